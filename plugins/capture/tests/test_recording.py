"""What a server records, over each protocol, and what it leaves out."""

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request

import pytest
from core_capture.records.reader import CaptureReader

from .conftest import message

DOCUMENT = b'{"inputs": [{"name": "x", "datatype": "FP32", "shape": [1], "data": [1.0]}]}'


def test_calls_of_both_protocols(capture):
    client = capture(capture_answers=True)
    before_ns = time.time_ns()

    _, http = client.infer(1.0, 2.0, id="mine")
    grpc = client.stub.ModelInfer(message(3.0), timeout=20)
    asked = [message(4.0), message(5.0)]
    streamed = list(client.stub.ModelStreamInfer(iter(asked), timeout=20))
    _, events = client.post("/v2/models/words/generate_stream", {"text_input": "a b c"})

    first, second, third, fourth = client.records(4)
    assert (first.protocol, first.model, first.status) == ("http", "double", 200)
    assert (first.answer, first.path) == (http, "/v2/models/double/infer")
    assert json.loads(first.body)["id"] == "mine"
    assert ("Content-Type", "application/json") in first.answer_fields
    assert (second.protocol, second.model, second.status) == ("grpc", "double", 0)
    assert second.body == message(3.0).SerializeToString()
    assert second.answer == grpc.SerializeToString()
    assert (third.model, third.path) == (
        "double",
        "/inference.GRPCInferenceService/ModelStreamInfer",
    )
    assert [each.data for each in third.received] == [each.SerializeToString() for each in asked]
    assert len(third.sent) == len(streamed) == 2
    assert (fourth.model, fourth.answer) == ("words", events)
    for each in (first, second, third, fourth):
        assert before_ns < each.time_ns < each.end_ns < time.time_ns()
        assert each.client.startswith("127.0.0.1:") and each.has_answer


def test_answers_are_recorded_on_request_only(capture):
    client = capture()

    client.infer(1.0)

    (record,) = client.records(1)
    assert (record.has_answer, record.sent, record.status) == (False, [], 200)


def test_requests_that_are_no_inference_are_not_recorded(capture):
    client = capture()

    urllib.request.urlopen(f"http://{client.url}/v2/models/double").close()
    client.infer(1.0)

    assert [each.method for each in client.records(1)] == ["POST"]


def test_secrets_are_never_recorded(capture):
    client = capture(
        capture_redact_header=["x-mine"],
        http_restricted_api={"metadata": ("x-admin", "s3cret5")},
        grpc_restricted_protocol={"metadata": ("admin", "s3cret6")},
        capture_answers=True,
    )
    headers = {
        "Authorization": "Bearer s3cret1",
        "COOKIE": "a=s3cret2",
        "X-Api-Key": "s3cret3",
        "x-mine": "s3cret4",
        "X-Admin": "s3cret5",
        "X-Open": "shown",
    }

    client.post("/v2/models/double/infer?token=s3cret7", DOCUMENT, headers)
    metadata = [("authorization", "s3cret1"), ("triton-grpc-protocol-admin", "s3cret6")]
    client.stub.ModelInfer(message(1.0), metadata=metadata, timeout=20)

    records = client.records(2)
    files = b"".join(each.read_bytes() for each in client.folder.iterdir())
    assert b"s3cret" not in files
    assert b"shown" in files
    fields = {name.lower(): value for name, value in records[0].fields}
    hidden = ("authorization", "cookie", "x-api-key", "x-mine", "x-admin")
    assert {fields[name] for name in hidden} == {"(redacted)"}


def test_models_are_chosen_by_pattern(capture):
    client = capture(capture_model=["wor*"])

    client.infer(1.0)
    list(client.stub.ModelStreamInfer(iter([message(1.0)]), timeout=20))
    client.post("/v2/models/words/generate", {"text_input": "a"})

    assert [each.model for each in client.records(1)] == ["words"]


def test_a_stream_is_chosen_by_the_model_of_its_first_message(capture):
    client = capture(capture_model=["double"])

    list(client.stub.ModelStreamInfer(iter([message(1.0)]), timeout=20))

    assert [each.model for each in client.records(1)] == ["double"]


def test_a_share_of_the_requests(capture):
    client = capture(capture_rate=0.5)

    for _ in range(100):
        client.infer(1.0)
    client.stop()

    assert 20 < len(list(CaptureReader(client.folder).records())) < 80


def test_only_failed_requests(capture):
    client = capture(capture_errors=True)

    client.infer(1.0)
    client.infer(-1.0)
    client.infer(1.0, model="absent")
    with pytest.raises(Exception, match="below zero"):
        client.stub.ModelInfer(message(-1.0), timeout=20)

    records = client.records(3)
    assert [each.status for each in records] == [500, 404, 13]
    assert all(each.failed for each in records)
    assert "below zero" in dict(records[2].answer_fields)["grpc-message"]


def test_only_slow_requests(capture):
    def slow_from_ten(x):
        time.sleep(0.06 * (x[0] >= 10))
        return {"y": x}

    client = capture({"double": slow_from_ten}, capture_latency_ms=50)

    client.infer(1.0)
    client.infer(10.0)

    (record,) = client.records(1)
    assert b"10.0" in record.body and record.duration_ns >= 50e6


def test_a_caller(capture, tmp_path):
    from frontends.shared.access.tokens import line_of

    tokens = tmp_path / "tokens"
    tokens.write_text("\n".join(line_of(name, ["infer"], name) for name in ("anna", "ben")))
    client = capture(auth_tokens=str(tokens), capture_caller=["an*"])

    for name in ("ben", "anna"):
        client.infer(1.0, headers={"Authorization": f"Bearer {name}"})

    assert [each.caller for each in client.records(1)] == ["anna"]


def test_a_call_with_too_many_bytes_is_cut(capture):
    client = capture(capture_answers=True, capture_request_bytes=1000)

    client.infer(*([1.0] * 1000))
    client.infer(1.0)

    large, small = client.records(2)
    assert (large.cut, large.body, large.answer) == (True, b"", b"")
    assert not small.cut and small.answer


def test_what_the_disk_is_too_slow_for_is_counted(capture, monkeypatch):
    from core_capture.recording.files import CaptureFiles

    client = capture(capture_queue_bytes=10_000)
    write = CaptureFiles.write
    monkeypatch.setattr(
        CaptureFiles, "write", lambda self, pieces: (time.sleep(0.2), write(self, pieces))
    )
    for _ in range(4):
        client.infer(*([1.0] * 1500))

    end = time.monotonic() + 20
    while sum(counts(client).values()) < 4:
        assert time.monotonic() < end
        time.sleep(0.01)
    found = counts(client)
    client.stop()

    assert found["queue"] > 0 and found["disk"] == 0
    assert len(list(CaptureReader(client.folder).records())) == found["written"] > 0


def counts(client):
    found = {each.name: each.samples for each in client.server.metrics() if "capture" in each.name}
    dropped = {each.labels["reason"]: each.value for each in found["core_capture_dropped"]}
    return {"written": found["core_capture_records"][0].value, **dropped}


def test_a_full_disk_loses_records_and_no_request(capture, monkeypatch, caplog):
    client = capture()
    client.infer(1.0)
    client.records(1)
    calls = []

    def full(file, data):
        calls.append(len(data))
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("core_capture.recording.files.os.write", full)
    assert client.infer(2.0)[0] == 200
    while not calls:
        time.sleep(0.01)
    monkeypatch.undo()
    client.infer(3.0)

    assert [b"3.0" in each.body for each in client.records(2)] == [False, True]
    assert "No space left on device; 1 captured requests are lost" in caplog.text
    values = {each.name: each.samples for each in client.server.metrics() if "capture" in each.name}
    assert values["core_capture_records"][0].value == 2
    assert {s.labels["reason"]: s.value for s in values["core_capture_dropped"]} == {
        "queue": 0,
        "disk": 1,
    }


def test_a_folder_that_cannot_be_written_stops_the_start(tmp_path):
    import core
    from core.errors import CoreError

    (tmp_path / "file").write_text("")
    with pytest.raises(CoreError, match=r"--capture=.*cannot be written"):
        core.Server(capture=str(tmp_path / "file")).start()


def test_records_survive_kill_9(tmp_path):
    """A process that is killed while it records keeps every complete record."""
    code = """
import sys, threading, urllib.request, core
from pathlib import Path
server = core.Server(capture=sys.argv[1]).start()
server.bind("double", lambda x: {"y": x * 2}, inputs={"x": ("FP32", [-1])}, outputs={"y": ("FP32", [-1])})
port = server.serve(http_port=0)["http"]
body = b'{"inputs": [{"name": "x", "datatype": "FP32", "shape": [1], "data": [1.0]}]}'
for number in range(10**6):
    urllib.request.urlopen(f"http://127.0.0.1:{port}/v2/models/double/infer", body).read()
    print(number, flush=True)
"""
    process = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE)
    for line in process.stdout:
        if int(line) >= 50 and (before := complete(tmp_path)) > 20:
            break
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    process.stdout.close()

    found = list(CaptureReader(tmp_path).records())
    assert len(found) >= before
    assert all(each.status == 200 and len(each.body) > 50 for each in found)


def complete(folder):
    return len(list(CaptureReader(folder).records())) if list(folder.iterdir()) else 0
