"""A capture as the input of `core run`: whole requests, in their order, one at a time."""

import asyncio

import pytest

pytest.importorskip("core_capture")

from core_capture.records.reader import CaptureReader
from core_capture.records.record import Record, RecordedMessage, encode
from core_jobs.offline.inputs.files import Inputs
from core_jobs.offline.item import Request
from core_jobs.offline.targets.in_process import InProcess

from core import dtypes
from core.config import InputSpec, Signature
from core.errors import CoreError

from .conftest import request

SIGNATURE = Signature("m", 1, {"x": InputSpec("x", dtypes.FP32, (-1,))}, {}, 0, False)


def record(time_ns, body, *, path="/v2/models/m/infer", model="m", **more):
    head = f"POST {path} HTTP/1.1\r\n"
    return Record(time_ns, "http", head, model, received=[RecordedMessage(0, body)], **more)


@pytest.fixture
def items(tmp_path):
    """Return the items of a capture with these records."""

    def read(*records):
        folder = tmp_path / "capture"
        folder.mkdir()
        data = b"".join(part for each in records for part in encode(each))
        (folder / "a.corecap").write_bytes(b"core capture 1\n" + data)
        return Inputs([folder]).items(SIGNATURE)

    return read


def test_requests_have_their_ids_and_parameters(items):
    sequence = {"sequence_id": 7, "sequence_start": True, "priority": 2}
    parameters = {**sequence, "mine": "x", "binary_data_output": True}

    (one,) = items(record(1, request(5, id="first", parameters=parameters)))
    found = one.read()

    assert (found.id, found.parameters) == ("first", {**sequence, "mine": "x"})
    assert found.inputs["x"].array.tolist() == [5]
    assert one.source.endswith("a.corecap:15") and one.bytes > 0


def test_requests_come_in_the_order_of_their_beginnings(items):
    """Also those of sequences, and those that ended in another order."""
    given = [(3, {"sequence_id": 1}), (1, {"sequence_id": 2}), (2, {}), (4, {"sequence_id": 2})]
    records = [
        record(time_ns, request(time_ns, id=str(time_ns), parameters=parameters))
        for time_ns, parameters in given
    ]

    assert [each.read().id for each in items(*records)] == ["1", "2", "3", "4"]


def test_a_record_is_read_when_its_turn_comes(items, monkeypatch):
    read = []
    original = CaptureReader.read
    monkeypatch.setattr(
        CaptureReader, "read", staticmethod(lambda place: (read.append(place), original(place))[1])
    )
    found = items(*(record(time_ns, request(1)) for time_ns in range(5)))

    next(found)
    assert len(read) == 1
    list(found)
    assert len(read) == 5


def test_requests_that_are_not_whole_are_left_out_and_named(items, caplog):
    found = items(
        record(1, request(1), redacted=["x"]),
        record(2, b"{}", path="/v2/models/m/generate"),
        record(3, request(3, id="whole")),
        record(4, request(4), model="another"),
    )

    assert [each.read().id for each in found] == ["whole"]
    assert "1: tensors were redacted; 1: /v2/models/m/generate is no inference" in caplog.text


def test_a_capture_without_a_usable_request_is_refused(items):
    with pytest.raises(CoreError, match="no usable requests for model 'm'; 1: too many bytes"):
        list(items(record(1, request(1), cut=True)))


def test_parameters_of_the_protocol_are_fields_in_this_process(monkeypatch):
    asked = []

    class Server:
        async def infer_async(self, model, inputs, **fields):
            asked.append(fields)
            return {}

    monkeypatch.setattr("core.Server", lambda **_: Server())
    parameters = {"sequence_id": 7, "sequence_end": True, "timeout": 9, "mine": 1.5}
    asyncio.run(InProcess("m", -1, []).ask(Request({}, "a", parameters)))

    own = {"correlation_id": 7, "sequence_end": True, "queue_timeout_us": 9}
    assert asked == [{"id": "a", "parameters": {"mine": 1.5}, **own}]
