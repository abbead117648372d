"""What releases after 2.51 have added or mended, as clients see it. The original of 2.51 skips it."""

import json
import os
import pathlib
import re
import signal
import socket
import time

import grpc
import numpy as np
import pytest
import tritonclient.grpc.service_pb2 as pb
import tritonclient.grpc.service_pb2_grpc as pb_grpc
from conformance.model import Model
from conformance.platform_port import skip_original
from conformance.protocol import data_of, grpc_input, refused, tensor, wait_until

LIMIT = 1 << 16  # bytes of a body
CHUNKS = 65536  # non-empty ones of a body

# Sends a megabyte after the other until its client has gone; a negative input asks for what it has seen.
ENDLESS = """
import threading
import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def initialize(self, args):
        self.begun = self.cancelled = 0

    def execute(self, requests):
        for request in requests:
            sender = request.get_response_sender()
            if request.inputs()[0].as_numpy()[0] < 0:
                numbers = np.array([self.begun, self.cancelled], np.int32)
                self.send(sender, numbers)
                sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
            else:
                self.begun += 1
                threading.Thread(target=self.run, args=(sender,), daemon=True).start()

    def run(self, sender):
        block = np.zeros(1 << 18, np.int32)
        while not sender.is_cancelled():
            self.send(sender, block)
        self.cancelled += 1
        sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)

    def send(self, sender, array):
        sender.send(pb_utils.InferenceResponse([pb_utils.Tensor("OUT", array)]))
"""
ENDLESS_CONFIG = """
backend: "python"
max_batch_size: 0
model_transaction_policy { decoupled: true }
input [ { name: "IN" data_type: TYPE_INT32 dims: [ 1 ] } ]
output [ { name: "OUT" data_type: TYPE_INT32 dims: [ -1 ] } ]
"""
PID = """
import os
import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        pid = pb_utils.Tensor("OUTPUT0", np.array([os.getpid()], np.float32))
        return [pb_utils.InferenceResponse([pid]) for _ in requests]
"""
ONE = {"inputs": [tensor("INPUT0", [1])]}


@pytest.fixture(autouse=True)
def _newer(launcher):
    skip_original(launcher, "newer than the original")


@pytest.fixture(scope="module")
def server(launch):
    return launch(
        [
            "plain",
            "generator",
            Model("endless", "repeat", config=ENDLESS_CONFIG, files={"1/model.py": ENDLESS}),
            Model("process", "plain", files={"1/model.py": PID}),
        ],
        f"--http-max-input-size={LIMIT}",
        "--metrics-config=histogram_latencies=true",
        "--allow-client-shm=false",
    )


def memory(server):
    """Return the resident bytes of the server."""
    text = pathlib.Path(f"/proc/{server.process.pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+) kB", text)[1]) << 10


@pytest.mark.parametrize(
    "parameters",
    [
        {"text": "x" * LIMIT},
        {"deep": {"deeper": {"text": "x" * LIMIT}}},
        {"many": [{"a": number} for number in range(LIMIT // 8)]},
    ],
    ids=["flat", "nested", "list"],
)
@pytest.mark.parametrize("way", ["generate", "generate_stream"])
def test_nested_parameters_of_generate_count_for_the_largest_body(server, parameters, way):
    """2.74."""
    body = {"text_input": "x", "parameters": parameters}

    text = refused(server.post(f"/v2/models/generator/{way}", body), 400, 413)

    assert str(LIMIT) in text and "http-max-input-size" in text
    assert server.post("/v2/models/generator/generate", {"text_input": "x"}).status == 200


def test_a_body_of_too_many_chunks_is_refused_and_its_memory_is_freed(server):
    """2.69 and 2.74."""
    head = b"POST /v2/models/plain/infer HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
    body = head + b"1\r\n \r\n" * (CHUNKS + 1)

    def ask():
        answer = server.raw(body)
        assert answer.startswith(b"HTTP/1.1 4"), answer[:200]

    ask()
    before = memory(server)
    for _ in range(30):
        ask()

    assert memory(server) - before < 30 << 20
    assert data_of(server.infer("plain", ONE)) == [2]


def test_an_output_that_is_named_twice_is_refused_over_grpc(server):
    """2.69."""
    request = pb.ModelInferRequest(model_name="plain", raw_input_contents=[b"\0" * 4])
    request.inputs.add(name="INPUT0", datatype="FP32", shape=[1])
    request.outputs.add(name="OUTPUT0")
    request.outputs.add(name="OUTPUT0")

    with (
        grpc.insecure_channel(server.grpc_address) as channel,
        pytest.raises(grpc.RpcError) as error,
    ):
        pb_grpc.GRPCInferenceServiceStub(channel).ModelInfer(request, timeout=60)

    assert error.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert "OUTPUT0" in error.value.details()


@pytest.mark.parametrize("kind", ["systemsharedmemory", "cudasharedmemory"])
def test_clients_share_no_memory_by_default(server, kind):
    """26.01."""
    path = f"/v2/{kind}/region/r/register"

    assert server.post(path, {"key": "/r", "offset": 0, "byte_size": 4}).status >= 400


def first_responses(server, model):
    name = "nv_inference_first_response_histogram_ms_count"
    return server.metric(name, model=model, version="1") or 0


def test_a_model_with_one_answer_has_a_histogram_of_first_responses(server):
    """25.12."""
    before = first_responses(server, "plain")

    for _ in range(3):
        server.infer("plain", ONE)

    assert wait_until(lambda: first_responses(server, "plain") == before + 3)


def seen(server):
    """Return the streams of the model `endless` that have begun, and those that it has seen cancelled."""
    client = server.grpc_client()
    found = []
    client.start_stream(callback=lambda result, error: found.append((result, error)))
    client.async_stream_infer("endless", [grpc_input("IN", np.array([-1], np.int32))])
    client.stop_stream()
    ((result, error),) = found
    assert error is None
    return result.as_numpy("OUT").tolist()


@pytest.mark.parametrize("end", ["cancel", "close"])
def test_a_stream_that_nobody_reads_is_cancelled_with_its_client(server, end):
    """2.75: the server waits for a client that reads nothing, and learns that it has gone."""
    begun, cancelled = seen(server)
    request = pb.ModelInferRequest(model_name="endless", raw_input_contents=[b"\1\0\0\0"])
    request.inputs.add(name="IN", datatype="INT32", shape=[1])
    options = [("grpc.max_receive_message_length", -1)]
    channel = grpc.insecure_channel(server.grpc_address, options=options)
    call = pb_grpc.GRPCInferenceServiceStub(channel).ModelStreamInfer(iter([request]))
    next(call)
    # Nothing is read from here on: the windows of the connection fill up, and the model waits.
    assert wait_until(lambda: seen(server)[0] == begun + 1)
    time.sleep(0.5)

    if end == "cancel":
        call.cancel()
    channel.close()

    assert wait_until(lambda: seen(server) == [begun + 1, cancelled + 1], timeout=60)


def test_the_signal_that_ended_the_process_of_a_model_is_in_the_log(server):
    """2.75."""
    pid = int(data_of(server.infer("process", ONE))[0])

    os.kill(pid, signal.SIGSEGV)

    assert wait_until(lambda: "SIGSEGV" in server.log_text())
    assert wait_until(lambda: server.infer("process", ONE).status == 200, timeout=60)


@pytest.mark.parametrize("length", ["99999999999999999999999", "-99999999999999999999999", "1e9"])
def test_a_header_length_beyond_every_number_is_a_bad_request(server, length):
    """2.73."""
    headers = {"Inference-Header-Content-Length": length}

    refused(server.infer("plain", json.dumps(ONE), headers=headers), 400)


def test_a_client_that_stops_in_the_middle_of_its_chunks_leaves_nothing(server):
    """2.74: what has arrived is freed when the connection ends."""
    head = b"POST /v2/models/plain/infer HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
    chunk = b"%x\r\n%s\r\n" % (LIMIT // 2, b" " * (LIMIT // 2))

    def leave():
        with socket.create_connection(("127.0.0.1", server.http_port), timeout=20) as connection:
            connection.sendall(head + chunk)

    for _ in range(50):
        leave()
    before = memory(server)
    for _ in range(400):
        leave()

    assert wait_until(lambda: memory(server) - before < 8 << 20)
    assert data_of(server.infer("plain", ONE)) == [2]
