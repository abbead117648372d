"""A client that requests a long stream and does not read it: the model waits, others are served."""

import json
import pathlib
import socket

import grpc
import numpy as np
import pytest
import tritonclient.grpc.service_pb2 as pb
from conformance.model import Model
from conformance.protocol import wait_until

ANSWERS = 1_000_000
ANSWER_BYTES = 10_000
# The capacity of the kernel's buffers, HTTP/2's window and the server's limits, with a large margin;
# the whole stream has 10 GB.
MOST_BYTES = 96 * 2**20
CONFIG = """
backend: "python"
model_transaction_policy { decoupled: true }
input [ { name: "STREAM" data_type: TYPE_INT32 dims: [ 1 ] } ]
output [ { name: "SENT" data_type: TYPE_INT32 dims: [ 1 ] } ]
output [ { name: "FILL" data_type: TYPE_UINT8 dims: [ -1 ] } ]
"""
MODEL = f"""
import threading
import numpy as np
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    sent = 0
    ended = 0

    def execute(self, requests):
        for request in requests:
            sender = request.get_response_sender()
            if request.inputs()[0].as_numpy()[0]:
                threading.Thread(target=self.stream, args=(sender,)).start()
            else:
                self.answer(sender, 1, -1 if self.ended else self.sent)
                sender.send(flags=1)

    def stream(self, sender):
        while self.sent < {ANSWERS} and not sender.is_cancelled():
            self.answer(sender, {ANSWER_BYTES}, self.sent)
            self.sent += 1
        self.ended = 1
        sender.send(flags=1)

    def answer(self, sender, size, number):
        sender.send(pb_utils.InferenceResponse([
            pb_utils.Tensor("SENT", np.array([number], np.int32)),
            pb_utils.Tensor("FILL", np.zeros(size, np.uint8))]))
"""


def endless():
    return Model("endless", "plain", config=CONFIG, files={"1/model.py": MODEL})


def memory(server):
    """Bytes that the server's own process holds."""
    status = pathlib.Path(f"/proc/{server.process.pid}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) * 1024


def sent(server):
    """Answers of the stream so far; -1 when the model has ended it."""
    answer = server.post("/v2/models/endless/generate", json.dumps({"STREAM": 0}).encode())
    return answer.json["SENT"]


def stands_still(server):
    """The number of answers at which the model has stopped."""
    seen = []

    def same():
        seen.append(sent(server))
        return len(seen) > 20 and seen[-1] == seen[-20]

    wait_until(same, timeout=30)
    return seen[-1]


def http_stream(server):
    """Opens the stream; what ends it."""
    body = json.dumps({"STREAM": 1}).encode()
    host, port = server.http_address.split(":")
    client = socket.create_connection((host, int(port)))
    client.sendall(
        b"POST /v2/models/endless/generate_stream HTTP/1.1\r\nHost: x\r\n"
        b"Content-Length: %d\r\n\r\n%b" % (len(body), body)
    )
    return client.close


def grpc_stream(server):
    channel = grpc.insecure_channel(server.grpc_address)
    infer = channel.stream_stream(
        "/inference.GRPCInferenceService/ModelStreamInfer",
        request_serializer=pb.ModelInferRequest.SerializeToString,
        response_deserializer=pb.ModelStreamInferResponse.FromString,
    )
    request = pb.ModelInferRequest(model_name="endless")
    request.inputs.add(name="STREAM", datatype="INT32", shape=[1])
    request.raw_input_contents.append(np.array([1], np.int32).tobytes())
    call = infer(iter([request]))
    next(call)

    def end():
        call.cancel()
        channel.close()

    return end


@pytest.mark.parametrize(
    ("options", "stream"),
    [
        ([], http_stream),
        (["--http-lane=aiohttp"], http_stream),
        ([], grpc_stream),
        (["--grpc-engine=grpcio"], grpc_stream),
    ],
    ids=["http", "http by aiohttp", "grpc", "grpc by grpcio"],
)
def test_the_model_waits_until_the_client_goes(launch, options, stream):
    server = launch([endless()], *options)
    before = memory(server)

    end = stream(server)
    try:
        wait_until(lambda: sent(server) > 100)
        stopped = stands_still(server)

        assert stopped * ANSWER_BYTES < MOST_BYTES
        assert memory(server) - before < 2 * MOST_BYTES
    finally:
        end()
    wait_until(lambda: sent(server) == -1)
