"""Credentials come before the message: a call is refused after its headers, in every engine."""

import gzip
import json
import socket
import struct
import time

import grpc
import pytest
import tritonclient.grpc.service_pb2 as pb
import tritonclient.grpc.service_pb2_grpc as pb_grpc
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import ResponseReceived, StreamEnded, TrailersReceived

from frontends.grpc.requests_in_flight import RequestsInFlight
from frontends.grpc.table import methods
from frontends.shared.access.tokens import line_of

MB = 2**20
INFER = "/inference.GRPCInferenceService/ModelInfer"
LOG = "/inference.GRPCInferenceService/LogSettings"
OK, INVALID, EXHAUSTED, UNAVAILABLE, UNAUTHENTICATED = 0, 3, 8, 14, 16


@pytest.fixture
def tokens(tmp_path):
    path = tmp_path / "tokens"
    path.write_text("\n".join(line_of(role, [role], role) for role in ("infer", "read", "manage")))
    return str(path)


class Raw:
    """A client that sends parts of calls."""

    def __init__(self, address):
        host, port = address.rsplit(":", 1)
        self.socket = socket.create_connection((host, int(port)), 20)
        self.h2 = H2Connection(H2Configuration(client_side=True, header_encoding="utf-8"))
        self.h2.initiate_connection()
        self.found = {}
        self.flush()

    def flush(self):
        self.socket.sendall(self.h2.data_to_send())

    def open(self, path, **metadata):
        number = self.h2.get_next_available_stream_id()
        head = {
            ":method": "POST",
            ":scheme": "http",
            ":path": path,
            ":authority": "x",
            "content-type": "application/grpc",
            "te": "trailers",
        }
        more = {key.replace("_", "-"): value for key, value in metadata.items()}
        self.h2.send_headers(number, list({**head, **more}.items()))
        self.flush()
        return number

    def send(self, number, data):
        """Send as many bytes as the window allows."""
        room = min(self.h2.local_flow_control_window(number), self.h2.max_outbound_frame_size)
        self.h2.send_data(number, data[:room])
        self.flush()

    def status(self, number, timeout_s=20):
        """Return the status of a call that only the server ends."""
        end = time.monotonic() + timeout_s
        while number not in self.found:
            assert time.monotonic() < end
            self.socket.settimeout(end - time.monotonic())
            for event in self.h2.receive_data(self.socket.recv(65536)):
                if isinstance(event, ResponseReceived | TrailersReceived):
                    headers = dict(event.headers)
                    if "grpc-status" in headers:
                        self.found[event.stream_id] = int(headers["grpc-status"])
                elif isinstance(event, StreamEnded):
                    assert event.stream_id in self.found
            self.flush()
        return self.found[number]


@pytest.fixture
def raw():
    opened = []

    def connect(served):
        opened.append(Raw(served.address))
        return opened[-1]

    yield connect
    for each in opened:
        each.socket.close()


def paths(served):
    async def found():
        return [
            path
            for path, row in methods(served.server, RequestsInFlight()).items()
            if row.category != "health"
        ]

    return served.loop_thread.run(found())


def test_every_method_refuses_at_the_headers(serve, raw, tokens):
    served = serve(auth_tokens=tokens)
    client = raw(served)

    for path in paths(served):
        assert client.status(client.open(path)) == UNAUTHENTICATED, path


def test_a_restricted_protocol_refuses_at_the_headers(serve, raw):
    client = raw(serve(grpc_restricted_protocol={"inference": ("key", "secret")}))

    assert client.status(client.open(INFER)) == UNAVAILABLE


def test_limits_refuse_at_the_headers(serve, raw):
    served = serve(limit_rate=0.001, limit_burst=1)
    client = raw(served)
    client.open(INFER)  # takes the one

    assert client.status(client.open(INFER)) == EXHAUSTED


def test_a_refused_call_is_answered_whatever_it_has_begun_to_send(serve, raw, tokens):
    client = raw(serve(auth_tokens=tokens))
    number = client.open(LOG, grpc_encoding="gzip")
    bomb = gzip.compress(b"\x0a\x00" * 4 * MB)
    client.send(number, struct.pack(">?I", True, 2**30) + bomb)

    assert client.status(number) == UNAUTHENTICATED


def test_a_call_that_may_waits_for_its_message(serve, raw, tokens):
    served = serve(auth_tokens=tokens)
    client = raw(served)
    number = client.open(INFER, authorization="Bearer infer")
    message = pb.ModelInferRequest(model_name="nothing").SerializeToString()

    client.h2.send_data(number, struct.pack(">?I", False, len(message)) + message, end_stream=True)
    client.flush()

    assert client.status(number) not in (OK, UNAUTHENTICATED)


@pytest.mark.parametrize(
    ("role", "changes", "code"),
    [
        ("infer", False, grpc.StatusCode.PERMISSION_DENIED),
        ("read", False, None),
        ("read", True, grpc.StatusCode.PERMISSION_DENIED),
        ("manage", True, None),
    ],
)
def test_settings_are_read_by_one_and_changed_by_another(serve, tokens, role, changes, code):
    served = serve(auth_tokens=tokens)
    request = pb.LogSettingsRequest()
    if changes:
        request.settings["log_verbose_level"].uint32_param = 0

    with grpc.insecure_channel(served.address) as channel:
        stub = pb_grpc.GRPCInferenceServiceStub(channel)
        try:
            stub.LogSettings(request, metadata=[("authorization", f"Bearer {role}")], timeout=20)
            found = None
        except grpc.RpcError as error:
            found = error.code()

    assert found is code


def test_a_refusal_has_a_line_with_its_caller(serve, tokens, tmp_path, until):
    log = tmp_path / "access"
    served = serve(auth_tokens=tokens, access_log=str(log))
    with grpc.insecure_channel(served.address) as channel:
        call = channel.unary_unary(INFER)
        with pytest.raises(grpc.RpcError):
            call(b"", metadata=[("authorization", "Bearer read")], timeout=20)

    until(lambda: log.exists() and log.read_text().count("\n"))
    line = json.loads(log.read_text().splitlines()[0])

    assert line["status"] == 7
    assert "read" in line["caller"]


@pytest.mark.parametrize("entry", [b"\x2a\x00", b"\x22\x00", b"\x32\x00"])
def test_a_small_message_of_very_many_entries_costs_little(serve, entry):
    served = serve()
    message = b"\x0a\x04echo" + entry * 4 * MB

    gzipped = grpc.Compression.Gzip
    with (
        grpc.insecure_channel(served.address, compression=gzipped) as channel,
        pytest.raises(grpc.RpcError) as error,
    ):
        channel.unary_unary(INFER)(message, timeout=20)

    assert error.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert "more than 10000" in error.value.details()


def test_the_memory_of_all_calls_has_a_limit(serve, infer_request):
    served = serve(request_memory_byte_size=2 * MB)
    large = infer_request(values=[0.0] * MB)

    with grpc.insecure_channel(served.address) as channel:
        stub = pb_grpc.GRPCInferenceServiceStub(channel)
        with pytest.raises(grpc.RpcError) as error:
            stub.ModelInfer(large, timeout=20)
        assert error.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert "--request-memory-byte-size" in error.value.details()
        stub.ModelInfer(infer_request(), timeout=20)
    assert served.server.account.held == 0


def test_a_stream_releases_its_memory(serve, infer_request, until):
    served = serve()
    requests = [infer_request(values=[0.0] * 100_000) for _ in range(5)]

    with grpc.insecure_channel(served.address) as channel:
        stub = pb_grpc.GRPCInferenceServiceStub(channel)
        answers = list(stub.ModelStreamInfer(iter(requests), timeout=20))

    assert [each.error_message for each in answers] == [""] * 5
    until(lambda: served.server.account.held == 0)


def test_a_request_of_a_stream_beyond_the_memory_limit_is_refused(serve, infer_request, until):
    """On nghttp2 the stream ends, for its message is not whole; with grpcio that request has an error."""
    served = serve(request_memory_byte_size=4 * MB)
    requests = [infer_request(), infer_request(values=[0.0] * 600_000)]

    with grpc.insecure_channel(served.address) as channel:
        stub = pb_grpc.GRPCInferenceServiceStub(channel)
        texts = []
        try:
            for answer in stub.ModelStreamInfer(iter(requests), timeout=20):
                texts.append(answer.error_message)
        except grpc.RpcError as error:
            assert error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
            texts.append(error.details())
        stub.ModelInfer(infer_request(), timeout=20)

    assert "--request-memory-byte-size" in texts[-1]
    until(lambda: served.server.account.held == 0)


@pytest.mark.parametrize("streamed", [False, True])
def test_tensors_of_typed_contents_are_counted(serve, until, streamed):
    """A number of one byte in the message becomes one of eight bytes in the tensor."""
    served = serve(request_memory_byte_size=8 * MB)
    message = pb.ModelInferRequest(model_name="echo")
    entry = message.inputs.add(name="x", datatype="INT64", shape=[MB])
    entry.contents.int64_contents.extend([1] * MB)

    with grpc.insecure_channel(served.address) as channel:
        stub = pb_grpc.GRPCInferenceServiceStub(channel)
        with pytest.raises(grpc.RpcError) as error:
            if streamed:
                list(stub.ModelStreamInfer(iter([message]), timeout=20))
            else:
                stub.ModelInfer(message, timeout=20)

    assert error.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert "a tensor" in error.value.details() or "messages" in error.value.details()
    until(lambda: served.server.account.held == 0)
