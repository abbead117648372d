"""Elements of named tensors are never written; names, datatypes and shapes are."""

import gzip
import json
import zlib

import numpy as np
import pytest
import tritonclient.grpc.service_pb2 as pb
from core_capture.recording.redaction import TensorRedaction
from core_capture.records.record import Record, RecordedMessage
from core_capture.tensors.forms import answers_of, requests_of
from core_capture.tensors.http_form import unpacked
from core_capture.tensors.message import Unreadable

from .conftest import counts, message

SECRET = b"s3cret"


def record(body, fields="", path="/v2/models/m/infer", answer=b"", answer_fields=""):
    head = f"POST {path} HTTP/1.1\r\nContent-Length: {len(body)}\r\n{fields}"
    received, sent = [RecordedMessage(1, body)], [RecordedMessage(2, answer)] if answer else []
    start = "HTTP/1.1 200 OK\r\n"
    return Record(
        0, "http", head, "m", received=received, sent=sent, answer_head=start + answer_fields
    )


def redacted(one, *names):
    TensorRedaction(names).redact(one)
    return one


def infer(*tensors, **more):
    rows = [{"name": n, "datatype": t, "shape": s, "data": d} for n, t, s, d in tensors]
    return json.dumps({"inputs": rows, **more}).encode()


def test_json_tensors():
    body = infer(
        ("a", "BYTES", [2], ["s3cret", "x"]),
        ("b", "FP32", [1, 2], [[1.5, 2.5]]),
        ("c", "BOOL", [1], [True]),
    )

    one = redacted(record(body), "a", "b", "c")

    assert one.redacted == ["a", "b", "c"]
    inputs = json.loads(one.body)["inputs"]
    assert [each["data"] for each in inputs] == [["", ""], [[0.0, 0.0]], [False]]
    assert [each["shape"] for each in inputs] == [[2], [1, 2], [1]]
    assert f"Content-Length: {len(one.body)}\r\n" in one.head


def test_other_tensors_stay_and_names_are_patterns():
    body = infer(("a1", "INT8", [1], [7]), ("b", "INT8", [1], [8]))

    one = redacted(record(body), "a*")

    found = {each.name: each.array().tolist() for each in requests_of(one)[0].tensors}
    assert found == {"a1": [0], "b": [8]}


def test_a_body_without_such_tensors_stays_as_it_came():
    body = b' { "inputs" : [ ] } '

    one = redacted(record(body), "a")

    assert (one.body, one.redacted) == (body, [])


def test_binary_tensors():
    raw = np.array([1.5, 2.5], np.float32).tobytes()
    texts = b"\x06\0\0\0s3cret\x01\0\0\0x"
    rows = [
        {
            "name": "a",
            "datatype": "FP32",
            "shape": [2],
            "parameters": {"binary_data_size": len(raw)},
        },
        {
            "name": "t",
            "datatype": "BYTES",
            "shape": [2],
            "parameters": {"binary_data_size": len(texts)},
        },
        {
            "name": "b",
            "datatype": "FP32",
            "shape": [2],
            "parameters": {"binary_data_size": len(raw)},
        },
    ]
    text = json.dumps({"inputs": rows}).encode()
    fields = f"Inference-Header-Content-Length: {len(text)}\r\n"

    one = redacted(record(text + raw + texts + raw, fields), "a", "t")

    found = {each.name: each.array().tolist() for each in requests_of(one)[0].tensors}
    assert found == {"a": [0, 0], "t": [b"", b""], "b": [1.5, 2.5]}
    assert SECRET not in one.body


def test_packed_bodies():
    body = gzip.compress(infer(("a", "BYTES", [1], ["s3cret"])))

    one = redacted(record(body, "Content-Encoding: gzip\r\n"), "a")

    assert json.loads(one.body)["inputs"][0]["data"] == [""]
    assert "Content-Encoding" not in one.head


@pytest.mark.parametrize("window", [31, 15, -15])
def test_a_packed_body_has_a_bound(monkeypatch, window):
    monkeypatch.setattr("core_capture.tensors.http_form._MOST_UNPACKED", 1000)
    made = zlib.compressobj(wbits=window)
    small, made_large = b"x" * 1000, made.compress(b"x" * 1001) + made.flush()
    made = zlib.compressobj(wbits=window)
    fields = [("Content-Encoding", "deflate")]

    assert unpacked(fields, made.compress(small) + made.flush()) == small
    with pytest.raises(Unreadable, match="a body unpacks to more than 1000 bytes"):
        unpacked(fields, made_large)


def test_a_packed_body_without_its_end_is_unreadable():
    with pytest.raises(Unreadable, match="a body is no gzip"):
        unpacked([("Content-Encoding", "gzip")], gzip.compress(b"x" * 100)[:-9])


def test_answers():
    output = {"name": "y", "datatype": "BYTES", "shape": [1], "data": ["s3cret"]}
    answer = json.dumps({"model_name": "m", "outputs": [output]}).encode()

    one = redacted(record(b"{}", answer=answer), "y")

    assert one.redacted == ["y"]
    assert answers_of(one.path, [], [one.answer])[0].tensors[0].array().tolist() == [b""]


def test_generate_and_its_events():
    events = (
        b'data: {"model_name":"m","text_output":"s3cret"}\n\ndata: {"text_output":"s3cret2"}\n\n'
    )
    one = record(
        b'{"text_input": "s3cret", "stream": true, "n": {"x": 7}}',
        path="/v2/models/m/generate_stream",
        answer=events,
        answer_fields="Content-Type: text/event-stream; charset=utf-8\r\n",
    )

    redacted(one, "text_*", "n")

    assert json.loads(one.body) == {"text_input": "", "stream": True, "n": {"x": 0}}
    assert (
        one.answer == b'data: {"model_name":"m","text_output":""}\n\ndata: {"text_output":""}\n\n'
    )


@pytest.mark.parametrize(
    ("body", "fields"),
    [
        (b"s3cret", ""),
        (b'{"inputs": 5', ""),
        (b"[1]", ""),
        (b'{"inputs": ["s3cret"]}', ""),
        (b"s3cret", "Content-Encoding: br\r\n"),
        (b"s3cret", "Content-Encoding: gzip\r\n"),
        (b"{}s3cret", "Inference-Header-Content-Length: 99\r\n"),
        (b'{"inputs": [{"name": "a", "parameters": {"binary_data_size": 9}}]}', ""),
        (b'{"inputs": [{"name": "a", "parameters": "s3cret"}]}', ""),
        (b'{"inputs": null, "id": "s3cret"}', ""),
        (b"s3cret", "Inference-Header-Content-Length: 0\r\n"),
        (b"{}s3cret", "Inference-Header-Content-Length: 2\r\n"),
        (b'--b\r\nContent-Disposition: form-data; name="a"\r\n\r\ns3cret', ""),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_dropped(body, fields):
    one = redacted(record(body, fields), "a")

    assert (one.body, one.cut, one.redacted) == (b"", True, ["*"])


@pytest.mark.parametrize(
    ("path", "body", "names"),
    [
        ("/v2/models/m/generate", {"parameters": {"text_input": "s3cret"}}, ["text_input"]),
        ("/v2/models/m/generate_stream", {"parameters": {"text_input": ["s3cret"]}}, ["text_input"]),
        ("/v2/models/m/generate", {"a": [[{"b": {"text_input": {"c": "s3cret"}}}]]}, ["text_input"]),
        ("/v2/models/m/generate", {"dataframe_split": {"data": [["s3cret"]]}}, ["dataframe_split"]),
        ("/v1/chat/completions", {"messages": [{"role": "user", "content": "s3cret"}]}, ["content"]),
        ("/v1/chat/completions", {"messages": [{"content": [{"text": "s3cret"}]}]}, ["content"]),
        ("/v1/chat/completions", {"messages": [{"reasoning": "s3cret"}]}, ["reasoning"]),
        ("/v1/chat/completions", {"messages": [{"tool_calls": [{"arguments": "s3cret"}]}]},
         ["arguments"]),
        ("/v1/chat/completions", {"tools": [{"function": {"description": "s3cret"}}]}, ["tools"]),
        ("/v1/messages", {"messages": [{"content": "s3cret"}]}, ["content"]),
        ("/v1/completions", {"prompt": ["s3cret"]}, ["prompt"]),
        ("/v1/responses", {"instructions": "s3cret", "input": ["s3cret"]}, ["input", "instructions"]),
        ("/v1/messages", {"system": "s3cret", "messages": []}, ["system"]),
        ("/v1/rerank", {"query": "s3cret", "documents": [{"text": "s3cret"}]}, ["documents", "query"]),
        ("/v1/models/m:predict", {"instances": [{"text_input": {"b64": "s3cret"}}]}, ["text_input"]),
        ("/v1/models/m/versions/1:predict", {"inputs": {"text_input": ["s3cret"]}}, ["text_input"]),
        ("/v1/models/m:predict", {"instances": ["s3cret"]}, ["instances"]),
        ("/v1/models/m:predict", {"instances": [{"b64": "s3cret"}]}, ["instances"]),
        ("/v1/models/m:predict", {"inputs": "s3cret"}, ["inputs"]),
        ("/v1/models/m:classify", {"examples": [{"text_input": "s3cret"}]}, ["text_input"]),
        ("/invocations", {"inputs": [{"name": "text_input", "data": ["s3cret"]}]}, ["text_input"]),
        ("/invocations", {"dataframe_records": [{"a": "s3cret"}]}, ["dataframe_records"]),
    ],
)  # fmt: skip
def test_a_named_input_is_found_wherever_a_route_takes_it(path, body, names):
    one = redacted(record(json.dumps(body).encode(), path=path), "text_input")

    assert SECRET not in one.body
    assert (one.redacted, one.cut) == (names, False)


@pytest.mark.parametrize(
    ("path", "answer", "names"),
    [
        ("/v1/chat/completions", {"choices": [{"message": {"content": "s3cret"}}]}, ["content"]),
        ("/v1/completions", {"choices": [{"text": "s3cret", "logprobs": ["s3cret"]}]}, ["logprobs", "text"]),
        ("/v1/models/m:predict", {"predictions": [{"text_output": "s3cret"}]}, ["text_output"]),
        ("/v1/models/m:predict", {"predictions": ["s3cret"]}, ["predictions"]),
        ("/v1/models/m:predict", {"outputs": [["s3cret"]]}, ["outputs"]),
    ],
)  # fmt: skip
def test_a_named_output_is_found_wherever_a_route_gives_it(path, answer, names):
    one = redacted(record(b"{}", path=path, answer=json.dumps(answer).encode()), "text_output")

    assert SECRET not in one.answer
    assert (one.redacted, one.cut) == (names, False)


def test_what_has_another_name_stays_beside_a_redacted_member():
    body = {"messages": [{"role": "user", "content": "s3cret"}], "model": "m", "n": 2}

    one = redacted(record(json.dumps(body).encode(), path="/v1/chat/completions"), "content")

    assert json.loads(one.body) == {**body, "messages": [{"role": "user", "content": ""}]}


def test_all_columns_of_a_data_frame_are_replaced():
    """The columns of a data frame may become the one input of a model, whatever their names are."""
    body = infer(("a", "BYTES", [1], ["s3cret"]), parameters={"content_type": "pd"})

    assert redacted(record(body), "text_input").redacted == ["a"]


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("generate", b'{"text_input": "s3cret", "text_input": "x"}'),
        ("generate", b'{"parameters": {"text_input": "s3cret"}, "parameters": {}}'),
        ("generate", b'{"n": {"text_input": "s3cret"}, "n": "\\u0022"}'),
        ("infer", b'{"inputs": [{"name": "text_input", "name": "b", "data": ["s3cret"]}]}'),
        ("infer", b'{"inputs": [{"name": "text_input", "data": ["s3cret"]}], "inputs": []}'),
    ],
)
def test_a_body_that_repeats_a_member_is_dropped(path, body):
    """Readers take the first, or the last, or refuse both: none of them may be in the record."""
    one = redacted(record(body, path=f"/v2/models/m/{path}"), "text_input")

    assert (one.body, one.redacted) == (b"", ["*"])


def test_quotes_within_texts_are_no_members():
    body = b'{"a": "\\u0022 \\" \\\\", "b": {"c": []}}'

    one = redacted(record(body, path="/v2/models/m/generate"), "text_input")

    assert (one.body, one.redacted) == (body, [])


@pytest.mark.parametrize("levels", [190, 230, 800, 5000])
@pytest.mark.parametrize("name", ["text_input", "other", "instances"])
def test_json_of_many_levels_is_redacted_or_dropped(levels, name):
    deep = b"[" * levels + b'{"text_input": "s3cret"}' + b"]" * levels
    body = b'{"%b": %b}' % (name.encode(), deep)

    one = redacted(record(body, path="/v1/models/m:predict"), "text_input")

    assert SECRET not in one.body
    assert (one.redacted == ["*"]) == (levels > 200)


def test_events_are_only_in_answers():
    fields = "Content-Type: text/event-stream\r\n"

    one = redacted(record(b"id: s3cret", fields, "/v2/models/m/generate"), "text_input")
    other = redacted(
        record(b"{}", path="/v2/models/m/generate", answer=b"s3cret\n", answer_fields=fields), "a"
    )

    assert (one.body, one.redacted) == (b"", ["*"])
    assert (other.answer, other.redacted) == (b"", ["*"])


def grpc(path, received, sent=()):
    return Record(
        0,
        "grpc",
        f"POST /inference.GRPCInferenceService/{path} HTTP/2\r\n",
        received=[RecordedMessage(1, each.SerializeToString()) for each in received],
        sent=[RecordedMessage(2, each.SerializeToString()) for each in sent],
    )


def test_messages_of_grpc():
    asked = message(1.5, 2.5)
    asked.inputs.add(name="t", datatype="BYTES", shape=[1])
    asked.raw_input_contents.append(b"\x06\0\0\0s3cret")
    typed = pb.ModelInferRequest(model_name="m")
    typed.inputs.add(name="t", datatype="BYTES", shape=[1]).contents.bytes_contents.append(SECRET)
    answer = pb.ModelInferResponse(model_name="m")
    answer.outputs.add(name="y", datatype="INT8", shape=[2])
    answer.raw_output_contents.append(b"\1\2")
    wrapped = pb.ModelStreamInferResponse(infer_response=answer)

    unary = redacted(grpc("ModelInfer", [asked], [answer]), "t", "y")
    stream = redacted(grpc("ModelStreamInfer", [asked, typed], [wrapped]), "t", "y")

    assert unary.redacted == stream.redacted == ["t", "y"]
    for one in (unary, stream):
        assert SECRET not in one.body
        first = requests_of(one)[0]
        found = {each.name: each.array().tolist() for each in first.tensors}
        assert found == {"x": [1.5, 2.5], "t": [b""]}
        found = answers_of(one.path, [], [each.data for each in one.sent])[0]
        assert found.tensors[0].array().tolist() == [0, 0]
    assert requests_of(stream)[1].tensors[0].array().tolist() == [b""]


def test_raw_contents_without_a_tensor_are_dropped():
    asked = message(1.0)
    asked.raw_input_contents.append(SECRET)

    assert redacted(grpc("ModelInfer", [asked]), "x").body == b""


def test_calls_of_tensorflow_serving_are_dropped():
    one = grpc("ModelInfer", [message(1.0)])
    one.head = "POST /tensorflow.serving.PredictionService/Predict HTTP/2\r\n"

    assert (redacted(one, "x").body, one.redacted) == (b"", ["*"])


def test_a_method_without_tensors_is_dropped():
    one = grpc("Other", [message(1.0)])

    assert (redacted(one, "x").body, one.cut) == (b"", True)


def test_a_server_redacts_nested_members_of_generate(capture):
    client = capture(capture_redact_tensor=["text_input"])
    body = {"parameters": {"text_input": "s3cret here"}}
    assert client.post("/v2/models/words/generate_stream", body)[1].count(b"data: ") == 2
    (one,) = client.records(1)

    assert (one.redacted, SECRET in one.body) == (["text_input"], False)


def test_a_server_with_redaction(capture, plain, command):
    client = capture(capture_redact_tensor=["x"], capture_answers=True)
    client.infer(12345.0, id="mine")
    client.stub.ModelInfer(message(12345.0), timeout=20)
    records = client.records(2)

    assert [each.redacted for each in records] == [["x"], ["x"]]
    assert json.loads(records[0].body)["id"] == "mine"
    assert b"12345" not in records[0].body
    assert b"24690" in records[0].answer
    done = command("replay", client.folder, "--url", plain.url, "--grpc-url", plain.grpc_url)
    assert (done.status, counts(done.out)["not compared"]) == (0, 2)
