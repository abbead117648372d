"""What the path of a request asks for."""

import time

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
    ("/v1/audio/transcriptions", Target(Purpose.NAMED_IN_BODY)),
    ("/v2/repository/models/m/load", Target(Purpose.EVERY)),
    ("/v1/models/m/load", Target(Purpose.EVERY)),
    ("/v1/models/org/m/unload", Target(Purpose.EVERY)),
    ("/v1/models/org%2Fm/load", Target(Purpose.EVERY)),
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
        ("/v1/models/org/m", Target(Purpose.MODEL, "org/m")),
        ("/v1/models/m/metadata", Target(Purpose.MODEL, "m")),
        ("/v1/models/m/versions/2/metadata", Target(Purpose.MODEL, "m")),
        ("/v1/models", Target(Purpose.LIST)),
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


FORM = (
    b'--x\r\nContent-Disposition: form-data; name="file"; filename="model"\r\n\r\n'
    b'%b\r\n--x\r\nContent-Disposition: form-data; name="model"\r\n%b\r\norg/m\r\n--x--\r\n'
)


@pytest.mark.parametrize("type", [b"", b"Content-Type: text/plain\r\n"])
def test_the_model_of_a_form(type):
    inner = FORM.replace(b"--x", b"--y") % (b"", b"")  # a file that is a form itself

    assert model_in(FORM % (b"RIFF\r\n\0", type)) == "org/m"
    assert model_in(FORM.replace(b"org/m", b"other") % (inner, type)) == "other"


@pytest.mark.parametrize("form", [b"--", b"--x\r\n", b"--x\r\n\r\n\r\n--x--", b"\r\n--"])
def test_a_form_without_a_model(form):
    assert model_in(form) == ""


def test_a_form_is_not_searched_for_long():
    line = b"--x\r\nContent-Disposition: form-data; " + b"name=model;" * 2_000_000
    began_s = time.thread_time()

    assert model_in(line) == model_in(b"--\r\n" * 2_000_000) == ""
    assert time.thread_time() - began_s < 5
