"""Members that a server makes anew are not compared; the data of models is."""

import json

import pytest
from core_capture.records.record import Record, RecordedMessage
from core_capture.replay.compare import Comparison
from core_capture.replay.outcome import Outcome

INFER = "/v2/models/m/infer"
JSON = [("Content-Type", "application/json")]


def difference(before, now, *, path=INFER, fields=JSON, exact=True, protocol="http", status=200):
    """How one answer differs from another."""
    head = "".join(f"{name}: {value}\r\n" for name, value in fields)
    record = Record(
        0,
        protocol,
        f"POST {path} HTTP/1.1\r\n",
        "m",
        status=status,
        answer_head=f"HTTP/1.1 200 OK\r\n{head}",
        has_answer=True,
        sent=[RecordedMessage(1, before)],
    )
    outcome = Outcome(status, fields=fields, messages=[now])
    return Comparison(exact=exact).difference(record, outcome, record)


def strings(*texts):
    return b"".join(len(each).to_bytes(4, "little") + each for each in texts)


def binary(text):
    """An answer with one string in binary, and its header fields."""
    raw = strings(text)
    row = {
        "name": "y",
        "datatype": "BYTES",
        "shape": [1],
        "parameters": {"binary_data_size": len(raw)},
    }
    head = json.dumps({"model_name": "m", "id": "same", "outputs": [row]}).encode()
    return head + raw, [("Inference-Header-Content-Length", str(len(head)))]


@pytest.mark.parametrize("exact", [True, False])
def test_texts_in_binary_tensors_are_compared(exact):
    alice, fields = binary(b'{"id": "alice"}')
    carol, _ = binary(b'{"id": "carol"}')

    assert difference(alice, carol, fields=fields, exact=exact)
    assert difference(alice, alice, fields=fields, exact=exact) == ""


def test_the_id_of_an_answer_with_binary_tensors_is_not_compared():
    one, fields = binary(b"x")

    assert difference(one, one.replace(b"same", b"anew"), fields=fields) == ""


def test_messages_of_grpc_are_compared_as_they_are():
    path = "/inference.GRPCInferenceService/ModelInfer"

    assert difference(
        b'{"id": "alice"}', b'{"id": "carol"}', path=path, protocol="grpc", status=0, fields=[]
    )


@pytest.mark.parametrize(
    ("path", "before"),
    [
        ("/v1/models/m:predict", {"predictions": [{"id": "alice"}]}),
        (INFER, {"id": "1", "parameters": {"id": "alice"}}),
        ("/v1/messages", {"id": "1", "content": [{"id": "2", "input": {"id": "alice"}}]}),
        ("/v1/completions", {"choices": [{"text": '{"id": "alice"}'}]}),
    ],
)
def test_data_with_such_names_is_compared(path, before):
    text = json.dumps(before).encode()

    assert difference(text, text.replace(b"alice", b"carol"), path=path)


@pytest.mark.parametrize(
    ("path", "before"),
    [
        (INFER, {"id": "old", "model_name": "m"}),
        ("/v1/chat/completions", {"id": "old", "choices": [{"message": {"tool_calls": [{"id": "old"}]}}]}),
        ("/v1/messages", {"id": "old", "content": [{"type": "tool_use", "id": "old", "input": {"x": [1]}}]}),
        ("/v1/responses", {"id": "old", "output": [{"id": "old", "content": [{"text": "x"}]}]}),
    ],
)  # fmt: skip
def test_ids_that_a_server_makes_are_not_compared(path, before):
    text = json.dumps(before).encode()

    assert difference(text, text.replace(b"old", b"new"), path=path) == ""
    assert difference(text, text.replace(b"old", b"new") + b" ", path=path)


def test_each_event_has_an_id_of_its_own():
    events = b'data: {"id": "old", "created": 1, "text": "a"}\n\ndata: {"id": "old"}\n\n'
    fields = [("Content-Type", "text/event-stream; charset=utf-8")]

    assert difference(events, events.replace(b"old", b"new"), fields=fields) == ""
    assert difference(events, events.replace(b'"a"', b'"b"'), fields=fields)


def test_a_body_of_another_kind_is_compared_as_it_is():
    fields = [("Content-Type", "text/plain")]

    assert difference(b'{"id": "alice"}', b'{"id": "carol"}', fields=fields)
