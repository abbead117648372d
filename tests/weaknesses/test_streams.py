"""Clients that leave, that are slow, that are many."""

import socket
import struct
import threading
import time

import grpc
import pytest
import tritonclient.grpc.service_pb2 as pb

from frontends.grpc.engine_grpcio import GrpcioEngine

GOOD = b'{"inputs":[{"name":"x","datatype":"FP32","shape":[1],"data":[1]}]}'
HEAD = b"POST /v2/models/%s/infer HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n"


def test_streams_that_are_cut_before_they_are_read_are_freed_once(server, message):
    """CVE-2025-23322: double free."""
    requests = [message(*range(50), model="many")] * 20

    calls = [server.stub.ModelStreamInfer(iter(requests), timeout=30) for _ in range(30)]
    for call in calls:
        call.cancel()

    for call in calls:
        with pytest.raises(grpc.RpcError):
            list(call)


def test_a_stream_with_refused_requests_continues(server, message):
    """A refusal with triton_grpc_error was used after it had been freed."""
    requests = [message(1.0, model="absent"), message(1.0)] * 10

    answers = list(server.stub.ModelStreamInfer(iter(requests), timeout=30))

    assert [bool(each.error_message) for each in answers] == [True, False] * 10
    with pytest.raises(grpc.RpcError) as error:
        list(
            server.stub.ModelStreamInfer(
                iter(requests), metadata=[("triton_grpc_error", "true")], timeout=30
            )
        )
    assert error.value.code() is grpc.StatusCode.NOT_FOUND


def test_a_client_that_disconnects_during_its_response_is_harmless(server):
    """SIGPIPE ended servers."""
    for _ in range(50):
        own = server.open(HEAD % (b"echo", len(GOOD)) + GOOD)
        # A reset, and not an orderly end: the server writes into nothing.
        own.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        own.close()


@pytest.mark.parametrize(
    "part",
    [
        b"POST /v2/models/echo/infer HTTP/1.1\r\nHo",
        HEAD % (b"echo", 1000) + b"{",
        b"GET /v2 HTTP/1.1\r\n",
    ],
    ids=["head", "body", "head of another"],
)
@pytest.mark.parametrize("size", [1, 0], ids=["", "large"])
def test_a_request_that_does_not_come_ends_its_connection(serve, part, size):
    """Slow clients that held all connections."""
    served = serve(http_header_timeout_secs=1000, http_body_timeout_secs=1000)
    part = part if size else part.replace(b"Length: 1000", b"Length: 10000000")
    own = served.open(part)
    connections = served.http._connections
    while served.call(lambda: not any(each.unfinished() for each in connections._open)):
        pass
    now = [5000.0]

    def look():
        connections.patience.look(now[0])

    served.call(look)
    now[0] += 999
    served.call(look)
    own.sendall(b"x")  # one byte now and then is not enough
    now[0] += 2
    served.call(look)

    answer = own.recv(65536)
    assert answer == b"" or answer.startswith(b"HTTP/1.1 408 ")
    own.close()


def test_a_body_that_comes_steadily_may_take_its_time(serve):
    served = serve(http_body_timeout_secs=10, http_body_byte_rate=7000)
    own = served.open(HEAD % (b"echo", len(GOOD) + 300_000))
    connections = served.http._connections

    def received():
        return [found.received for each in connections._open if (found := each.unfinished())]

    own.sendall(b" ")
    while not served.call(received):
        pass
    for step in range(4):
        served.call(connections.patience.look, 5000.0 + 9 * step)
        before = served.call(received)[0]
        own.sendall(b" " * 70_000)
        while served.call(received)[0] < before + 70_000:
            pass
    own.sendall(b" " * (20_000 - 1) + GOOD)

    assert own.recv(65536).startswith(b"HTTP/1.1 200 ")
    own.close()


def test_there_are_so_many_connections_at_the_most(serve):
    served = serve(http_max_connections=3)
    held = [served.open(b"GET /v2/health/live HTTP/1.1\r\nHost: x\r\n\r\n") for _ in range(3)]
    for each in held:
        assert each.recv(1000).startswith(b"HTTP/1.1 200 ")

    answer = served.send(b"")

    assert answer.startswith(b"HTTP/1.1 503 ")
    for each in held:
        each.close()
    while served.send(b"GET /v2 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")[9:12] == b"503":
        pass


def test_there_are_so_many_connections_of_grpc_at_the_most(serve, lanes, message):
    if lanes == "plain":
        pytest.skip("grpcio has no such bound")
    served = serve(grpc_max_connections=1)
    served.stub.ModelInfer(message(1.0), timeout=30)

    options = [("grpc.use_local_subchannel_pool", 1)]
    with grpc.insecure_channel(f"127.0.0.1:{served.grpc.port}", options) as other:
        call = other.unary_unary("/inference.GRPCInferenceService/ServerLive")
        with pytest.raises(grpc.RpcError) as error:
            call(b"", timeout=10)

    assert error.value.code() is grpc.StatusCode.UNAVAILABLE
    assert served.stub.ServerLive(pb.ServerLiveRequest(), timeout=30).live


def test_a_connection_has_so_many_calls_at_a_time_at_the_most(serve, lanes, message):
    if lanes == "plain":
        pytest.skip("grpcio resets some calls of a client that comes near to the bound")
    served = serve(grpc_max_concurrent_streams=2)

    served.stub.ServerLive(pb.ServerLiveRequest(), timeout=30)  # now the client knows the bound
    calls = [
        served.stub.ModelInfer.future(message(1.0, model="gated"), timeout=60) for _ in range(4)
    ]
    assert served.backend.running.wait(20)

    assert 1 <= served.call(lambda: served.grpc._intake.in_flight) <= 2
    served.backend.gate.set()
    assert [len(call.result().raw_output_contents) for call in calls] == [1] * 4


@pytest.fixture
def begun_again(server, monkeypatch):
    """Set when grpcio has a new server in the place of one that gave up."""
    engine, begun = server.grpc._engine, threading.Event()
    if isinstance(engine, GrpcioEngine):
        begin = engine._serve

        async def serve(address):
            port = await begin(address)
            begun.set()
            return port

        monkeypatch.setattr(engine, "_serve", serve)
    return begun


def test_a_path_that_is_no_text_does_not_end_the_server(server, lanes, raw_call, begun_again):
    """grpcio's server for asyncio gives up at one; then the engine begins again."""
    for path in (b"/inference.GRPC\x80Service/ModelInfer", b"/a\xc3"):
        begun_again.clear()
        raw_call(server.grpc.port, path)
        assert lanes == "fast" or begun_again.wait(60)

        answer = server.stub.ServerLive(pb.ServerLiveRequest(), timeout=30, wait_for_ready=True)
        assert answer.live


@pytest.mark.skipif(not hasattr(socket, "TCP_USER_TIMEOUT"), reason="is of Linux")
def test_a_client_that_does_not_read_a_response_loses_the_connection(serve):
    """Slow clients that held all answers: the kernel looks whether anything is taken."""
    served = serve(http_answer_timeout_secs=1)
    size = 1 << 24  # more than buffers of sockets take
    tensor = '{"name":"x","datatype":"FP32","shape":[%d],"parameters":{"binary_data_size":%d}}'
    json = b'{"inputs":[' + (tensor % (size // 4, size)).encode() + b"]}"
    begin = HEAD[:-2] % (b"echo", len(json) + size)
    begin += b"Inference-Header-Content-Length: %d\r\n\r\n" % len(json)
    connections = served.http._connections
    with socket.socket() as own:
        own.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        own.connect(("127.0.0.1", served.http.port))
        own.sendall(begin + json + bytes(size))
        assert own.recv(12, socket.MSG_PEEK) == b"HTTP/1.1 200"

        end = time.monotonic() + 60
        while served.call(lambda: len(connections._open)):
            assert time.monotonic() < end, "it is still there"
            time.sleep(0.05)
