"""Address, certificates, compression, the options of the connection, and the end."""

import concurrent.futures
import logging
import socket
import threading
import time

import grpc
import numpy as np
import pytest
import tritonclient.grpc as client_library
import tritonclient.grpc.service_pb2 as pb

from core.errors import CoreError, Kind
from frontends.grpc import transport
from frontends.grpc.frontend import GrpcFrontend
from frontends.grpc.options import GrpcOptions

Stub = client_library.service_pb2_grpc.GRPCInferenceServiceStub


class TestAddress:
    def test_an_address_in_use_is_named(self, serve):
        first = serve()
        port = first.frontend.port

        with pytest.raises(CoreError) as error:
            serve(grpc_port=port)
        assert error.value.kind is Kind.UNAVAILABLE
        assert error.value.message.startswith(f"Socket '127.0.0.1:{port}' already in use; ")
        assert "choose another port with --grpc-port" in error.value.message

    def test_an_address_that_is_not_ours_is_refused(self, serve):
        with pytest.raises(CoreError, match="Socket '203\\.0\\.113\\.7:0' already in use"):
            serve(grpc_address="203.0.113.7")

    def test_the_start_is_logged(self, serve, caplog):
        caplog.set_level(logging.INFO, "core")
        with socket.socket() as found:
            found.bind(("127.0.0.1", 0))
            port = found.getsockname()[1]

        serve(grpc_port=port)

        assert f"Started GRPCInferenceService at 127.0.0.1:{port}" in caplog.messages

    def test_servers_may_share_a_port(self, serve):
        first = serve(reuse_grpc_port=True)

        second = serve(reuse_grpc_port=True, grpc_port=first.frontend.port)

        assert second.address == first.address

    @pytest.mark.parametrize(
        ("host", "address"),
        [("0.0.0.0", "0.0.0.0:8001"), ("::", "[::]:8001"), ("localhost", "localhost:8001")],
    )
    def test_ipv6_addresses_get_brackets(self, host, address):
        assert transport.address(GrpcOptions(grpc_address=host)) == address

    def test_a_path_is_an_address(self, serve, tmp_path):
        for _ in range(2):  # the first server has left nothing that is in the way
            served = serve(grpc_address=f"unix:{tmp_path}/s")
            with grpc.insecure_channel(f"unix:{tmp_path}/s") as channel:
                assert Stub(channel).ServerLive(pb.ServerLiveRequest(), timeout=20).live
            served.begin_stop().result(20)

    def test_both_families_are_served_at_one_port(self, serve):
        served = serve(grpc_address="::")

        for host in ("127.0.0.1", "[::1]"):
            with grpc.insecure_channel(f"{host}:{served.frontend.port}") as channel:
                assert Stub(channel).ServerLive(pb.ServerLiveRequest(), timeout=20).live

    def test_a_disabled_frontend_is_not_enabled(self, serve):
        server = serve(allow_grpc=False).server

        assert not GrpcFrontend(server).enabled


class TestCertificates:
    def ready(self, served, credentials):
        address = f"localhost:{served.frontend.port}"
        with grpc.secure_channel(address, credentials) as channel:
            return Stub(channel).ServerReady(pb.ServerReadyRequest(), timeout=5).ready

    @pytest.fixture
    def files(self, certificates):
        return {
            "grpc_server_cert": str(certificates.server_crt),
            "grpc_server_key": str(certificates.server_key),
        }

    def test_a_client_that_trusts_the_root_is_answered(self, serve, certificates, files):
        served = serve(grpc_use_ssl=True, **files)

        root = certificates.root_crt.read_bytes()
        assert self.ready(served, grpc.ssl_channel_credentials(root))

    def test_the_real_client_takes_the_same_files(self, serve, certificates, files):
        served = serve(grpc_use_ssl=True, **files)

        with client_library.InferenceServerClient(
            f"localhost:{served.frontend.port}",
            ssl=True,
            root_certificates=str(certificates.root_crt),
        ) as client:
            assert client.is_server_ready()

    def test_a_client_without_tls_is_not_answered(self, serve, files):
        served = serve(grpc_use_ssl=True, **files)

        with grpc.insecure_channel(served.address) as channel, pytest.raises(grpc.RpcError):
            Stub(channel).ServerReady(pb.ServerReadyRequest(), timeout=2)

    def test_mutual_tls_answers_a_client_with_a_certificate(self, serve, certificates, files):
        served = serve(grpc_use_ssl_mutual=True, grpc_root_cert=str(certificates.root_crt), **files)

        credentials = grpc.ssl_channel_credentials(
            certificates.root_crt.read_bytes(),
            certificates.client_key.read_bytes(),
            certificates.client_crt.read_bytes(),
        )
        assert self.ready(served, credentials)

    @pytest.mark.parametrize("name", [None, "stranger"])
    def test_mutual_tls_refuses_other_clients(self, serve, certificates, files, name):
        served = serve(grpc_use_ssl_mutual=True, grpc_root_cert=str(certificates.root_crt), **files)

        own = ()
        if name is not None:
            own = (certificates.stranger_key.read_bytes(), certificates.stranger_crt.read_bytes())
        credentials = grpc.ssl_channel_credentials(certificates.root_crt.read_bytes(), *own)
        with pytest.raises(grpc.RpcError) as error:
            self.ready(served, credentials)
        assert error.value.code() is grpc.StatusCode.UNAVAILABLE

    def test_tls_without_a_file_option_is_an_error(self, serve):
        with pytest.raises(CoreError, match="name it with --grpc-server-key") as error:
            serve(grpc_use_ssl=True)
        assert error.value.kind is Kind.INVALID

    def test_a_file_that_is_not_there_is_named(self, serve, files, tmp_path):
        missing = str(tmp_path / "missing.pem")

        with pytest.raises(CoreError, match=f"--grpc-server-cert '{missing}' cannot be read"):
            serve(grpc_use_ssl=True, **{**files, "grpc_server_cert": missing})

    def test_a_root_is_needed_to_check_clients(self, serve, files):
        with pytest.raises(CoreError, match="name it with --grpc-root-cert"):
            serve(grpc_use_ssl_mutual=True, **files)

    @pytest.mark.parametrize("option", ["grpc_server_cert", "grpc_server_key", "grpc_root_cert"])
    def test_a_file_that_holds_something_else_is_named(self, serve, files, tmp_path, option):
        (tmp_path / "junk.pem").write_text("junk")
        options = {**files, option: str(tmp_path / "junk.pem")}

        with pytest.raises(CoreError, match=r"junk\.pem") as error:
            serve(grpc_use_ssl=True, **options)
        assert error.value.kind is Kind.INVALID

    def test_the_key_must_be_that_of_the_certificate(self, serve, files, certificates):
        options = {**files, "grpc_server_key": str(certificates.client_key)}

        with pytest.raises(CoreError, match="no certificate with its unencrypted key"):
            serve(grpc_use_ssl=True, **options)


class Wire:
    """A proxy before a server that counts the bytes of responses."""

    def __init__(self, port):
        self._target = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.received = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        try:
            near, _ = self._listener.accept()
        except OSError:
            return
        far = socket.create_connection(("127.0.0.1", self._target))
        threading.Thread(target=self._pump, args=(near, far, False), daemon=True).start()
        threading.Thread(target=self._pump, args=(far, near, True), daemon=True).start()

    def _pump(self, source, sink, counts):
        try:
            while data := source.recv(65536):
                if counts:
                    self.received += len(data)
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def close(self):
        self._listener.close()


class TestCompression:
    @pytest.fixture
    def wire(self, serve):
        opened = []

        def open_wire(level):
            served = serve(grpc_infer_response_compression_level=level)
            opened.append(Wire(served.frontend.port))
            return opened[-1]

        yield open_wire
        for each in opened:
            each.close()

    @pytest.mark.parametrize("level", ["none", "low", "medium", "high"])
    @pytest.mark.parametrize("streamed", [False, True], ids=["unary", "stream"])
    def test_inference_responses_are_compressed(self, wire, infer_request, level, streamed):
        counted = wire(level)
        request = infer_request(values=np.zeros(100_000))
        with grpc.insecure_channel(f"127.0.0.1:{counted.port}") as channel:
            if streamed:
                (answer,) = Stub(channel).ModelStreamInfer(iter([request]))
                answer = answer.infer_response
            else:
                answer = Stub(channel).ModelInfer(request)

        assert answer.raw_output_contents[0] == bytes(400_000)
        assert (counted.received > 400_000) == (level == "none")

    def test_other_responses_are_not(self, wire):
        counted = wire("high")
        with grpc.insecure_channel(f"127.0.0.1:{counted.port}") as channel:
            raw = channel.unary_unary("/inference.GRPCInferenceService/ServerMetadata")
            size = len(raw(b""))

        assert counted.received > size

    def test_a_client_without_compression_gets_none(self, wire, infer_request):
        counted = wire("high")
        options = [("grpc.compression_enabled_algorithms_bitset", 1)]
        with grpc.insecure_channel(f"127.0.0.1:{counted.port}", options) as channel:
            answer = Stub(channel).ModelInfer(infer_request(values=np.zeros(100_000)))

        assert answer.raw_output_contents[0] == bytes(400_000)
        assert counted.received > 400_000

    @pytest.mark.parametrize("algorithm", ["gzip", "deflate"])
    def test_compressed_requests_are_understood(self, served, algorithm):
        sample = np.zeros(5000, np.float32)
        entry = client_library.InferInput("x", sample.shape, "FP32")
        entry.set_data_from_numpy(sample)

        with client_library.InferenceServerClient(served.address) as client:
            result = client.infer("echo", [entry], compression_algorithm=algorithm)

        assert np.array_equal(result.as_numpy("y"), sample)


class TestConnections:
    def test_the_options_are_those_of_grpc(self):
        options = GrpcOptions(
            reuse_grpc_port=True,
            grpc_keepalive_time=1,
            grpc_keepalive_timeout=2,
            grpc_keepalive_permit_without_calls=True,
            grpc_http2_max_pings_without_data=3,
            grpc_http2_min_recv_ping_interval_without_data=4,
            grpc_http2_max_ping_strikes=5,
            grpc_max_connection_age=6,
            grpc_max_connection_age_grace=7,
            grpc_infer_response_compression_level="high",
        )

        assert dict(transport.channel_arguments(options)) == {
            "grpc.max_receive_message_length": 2**31 - 1,
            "grpc.max_send_message_length": 2**31 - 1,
            "grpc.max_concurrent_streams": 4096,
            "grpc.so_reuseport": 1,
            "grpc.keepalive_time_ms": 1,
            "grpc.keepalive_timeout_ms": 2,
            "grpc.keepalive_permit_without_calls": 1,
            "grpc.http2.max_pings_without_data": 3,
            "grpc.http2.min_ping_interval_without_data_ms": 4,
            "grpc.http2.max_ping_strikes": 5,
            "grpc.max_connection_age_ms": 6,
            "grpc.max_connection_age_grace_ms": 7,
            "grpc.default_compression_level": 3,
        }

    def test_connections_have_no_age_limit_by_default(self):
        arguments = dict(transport.channel_arguments(GrpcOptions()))

        assert not any("connection_age" in name for name in arguments)
        assert "grpc.default_compression_level" not in arguments

    def test_an_old_connection_is_closed(self, serve):
        served = serve(grpc_max_connection_age=200, grpc_max_connection_age_grace=100)
        with grpc.insecure_channel(served.address) as channel:
            states = []
            channel.subscribe(states.append)
            Stub(channel).ServerLive(pb.ServerLiveRequest())
            end = time.monotonic() + 10
            while grpc.ChannelConnectivity.IDLE not in states[1:]:
                assert time.monotonic() < end
                time.sleep(0.05)
            assert Stub(channel).ServerLive(pb.ServerLiveRequest()).live


class TestStop:
    TEXT = "GRPC server is shutting down and has stopped accepting new requests."

    @pytest.fixture
    def served(self, serve):
        return serve()

    @pytest.fixture
    def stub(self, served):
        with grpc.insecure_channel(served.address) as channel:
            yield Stub(channel)

    def test_running_calls_end_and_new_ones_are_refused(self, served, stub, infer_request):
        running = stub.ModelInfer.future(infer_request("gated"))
        assert served.gate.running.wait(20)

        stopped = served.begin_stop()
        with pytest.raises(grpc.RpcError) as error:
            while True:
                stub.ModelInfer(infer_request(), timeout=20)
        served.gate.open.set()

        assert error.value.code() is grpc.StatusCode.UNAVAILABLE
        assert error.value.details() == self.TEXT
        assert list(running.result(20).raw_output_contents)
        stopped.result(20)

    def test_it_takes_no_longer_than_it_may(self, served, stub, infer_request):
        running = stub.ModelInfer.future(infer_request("gated"))
        assert served.gate.running.wait(20)
        start = time.monotonic()

        served.begin_stop(0.3).result(20)

        assert time.monotonic() - start < 5
        assert running.exception(20) is not None
        assert served.gate.cancelled.wait(20)

    def test_a_quiet_stream_does_not_hold_it_up(self, served, stub, infer_request):
        more = threading.Event()

        def requests():
            yield infer_request(id="r")
            more.wait(20)

        stream = stub.ModelStreamInfer(requests())
        assert next(stream).infer_response.id == "r"

        served.begin_stop(30).result(5)

        with pytest.raises(grpc.RpcError) as error:
            next(stream)
        more.set()
        assert (error.value.code(), error.value.details()) == (
            grpc.StatusCode.UNAVAILABLE,
            self.TEXT,
        )

    def test_a_stream_that_exceeds_the_stop_time_gets_an_error(self, served, stub, infer_request):
        running = stub.ModelStreamInfer(iter([infer_request("gated")]))
        assert served.gate.running.wait(20)

        served.begin_stop(0.3).result(20)

        with pytest.raises(grpc.RpcError) as error:
            next(running)
        assert (error.value.code(), error.value.details()) == (
            grpc.StatusCode.UNAVAILABLE,
            "the server is shutting down, and the request was not done within --exit-timeout-secs=0.3",
        )
        assert served.gate.cancelled.wait(20)

    def test_a_second_stop_has_no_effect(self, served):
        served.begin_stop().result(20)

        served.begin_stop().result(20)

    def test_a_stop_without_a_start_has_no_effect(self, served, loop_thread):
        async def stop():
            await GrpcFrontend(served.server).stop(1.0)

        loop_thread.run(stop())

    def test_the_port_is_free_afterwards(self, served, serve):
        served.begin_stop().result(20)

        assert serve(grpc_port=served.frontend.port).address == served.address


def test_keepalive_of_both_sides_causes_no_error(serve, infer_request):
    served = serve(
        grpc_keepalive_time=30,
        grpc_keepalive_permit_without_calls=True,
        grpc_http2_min_recv_ping_interval_without_data=10,
    )
    options = [
        ("grpc.keepalive_time_ms", 50),
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.max_pings_without_data", 0),
    ]
    with grpc.insecure_channel(served.address, options) as channel:
        stub = Stub(channel)
        running = stub.ModelInfer.future(infer_request("gated"))
        assert served.gate.running.wait(20)
        with pytest.raises(grpc.FutureTimeoutError):
            running.result(0.5)  # ten pings or so, each way
        served.gate.open.set()
        assert running.result(20).outputs


def test_calls_of_many_tasks_on_one_channel_are_all_answered(served, infer_request):
    with grpc.insecure_channel(served.address) as channel:
        stub = Stub(channel)
        calls = [stub.ModelInfer.future(infer_request(id=str(n))) for n in range(500)]

        assert [call.result(60).id for call in calls] == [str(n) for n in range(500)]


def test_many_clients_at_a_time_are_all_answered(served, infer_request):
    def threaded():
        with grpc.insecure_channel(served.address) as channel:
            stub = Stub(channel)
            with concurrent.futures.ThreadPoolExecutor(8) as pool:
                requests = [infer_request(id=str(number)) for number in range(300)]
                return list(pool.map(stub.ModelInfer, requests))

    assert [answer.id for answer in threaded()] == [str(number) for number in range(300)]
