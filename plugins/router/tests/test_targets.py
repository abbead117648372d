"""What the path of a request asks for."""

import pytest
from core_router.http.sequence_parameters import SequenceParameters, model_in, sequence_of
from core_router.http.targets import target_of
from core_router.targets import Purpose, Target

BOTH = [
    ("/v2/models/m/infer", Target(Purpose.INFERENCE, "m")),
    ("/v2/models/m/versions/2/infer", Target(Purpose.INFERENCE, "m", "2")),
    ("/v2/models/m/generate_stream", Target(Purpose.INFERENCE, "m")),
    ("/v2/models/a%20b/infer", Target(Purpose.INFERENCE, "a b")),
    ("/v1/models/m:predict", Target(Purpose.INFERENCE, "m")),
    ("/v1/chat/completions", Target(Purpose.NAMED_IN_BODY)),
    ("/v2/repository/models/m/load", Target(Purpose.EVERY)),
    ("/v2/systemsharedmemory/region/r/register", Target(Purpose.EVERY)),
    ("/v2/models/m/trace/setting", Target(Purpose.EVERY)),
    ("/v2/repository/index", Target(Purpose.INDEX)),
    ("/anything", Target(Purpose.ANY)),
]


@pytest.mark.parametrize(("path", "target"), BOTH)
def test_post(path, target):
    assert target_of(b"POST", path.encode()) == target


@pytest.mark.parametrize(
    ("path", "target"),
    [
        ("/v2/health/live", Target(Purpose.LIVE)),
        ("/v2/health/ready", Target(Purpose.READY)),
        ("/v2/models/m", Target(Purpose.MODEL, "m")),
        ("/v2/models/m/versions/2/config", Target(Purpose.MODEL, "m", "2")),
        ("/v2/models/m/trace/setting", Target(Purpose.MODEL, "m")),
        ("/v1/models/m", Target(Purpose.MODEL, "m")),
        ("/v2/models/stats", Target(Purpose.STATISTICS)),
        ("/v2/models/m/versions/1/stats", Target(Purpose.STATISTICS, "m", "1")),
        ("/v2/logging", Target(Purpose.ANY)),
        ("/v2/models/m/infer", Target(Purpose.MODEL, "m")),
        ("/v1/models", Target(Purpose.ANY)),
    ],
)
def test_get(path, target):
    assert target_of(b"GET", path.encode()) == target


@pytest.mark.parametrize(
    ("body", "found"),
    [
        (
            b'{"parameters":{"sequence_id":7,"sequence_start":true}}',
            SequenceParameters(7, True, False),
        ),
        (
            b'{"parameters":{"sequence_id":"a","sequence_end":true}}',
            SequenceParameters("a", False, True),
        ),
        (b'{"text_input":"x","sequence_id":3}', SequenceParameters(3, False, False)),
        (b'{"parameters":{"sequence_id":0}}', None),
        (b'{"parameters":{}}', None),
        (b"[]", None),
        (b"{", None),
    ],
)
def test_the_sequence_of_a_request(body, found):
    assert sequence_of(body, -1) == found


def test_the_sequence_is_in_the_json_before_binary_tensors():
    body = b'{"parameters":{"sequence_id":7}}'

    assert sequence_of(body + b"\xff\xff", len(body)) == SequenceParameters(7, False, False)


def test_the_model_of_a_request_to_openais_routes():
    assert model_in(b'{"model":"chat","messages":[]}') == "chat"
    assert model_in(b'{"model":5}') == model_in(b"no json") == model_in(b"[]") == ""
