"""Access over gRPC: every method, in every engine, for callers with and without tokens; and certificates
that change."""

import asyncio
import logging
import queue
import shutil
import ssl
import threading

import grpc
import pytest
import tritonclient.grpc.service_pb2 as pb
import tritonclient.grpc.service_pb2_grpc as pb_grpc

from frontends.grpc.engine_grpcio import GrpcioEngine
from frontends.grpc.method import StreamMethod
from frontends.grpc.requests_in_flight import RequestsInFlight
from frontends.grpc.table import methods
from frontends.shared.access import CATEGORIES
from frontends.shared.access.limits import Limits
from frontends.shared.access.tokens import line_of
from frontends.shared.context import context_of
from frontends.shared.forms import RESTRICTED_CATEGORIES

ROLES = ("infer", "read", "manage")
REFUSED = {grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.PERMISSION_DENIED}
PATIENCE_S = 20


@pytest.fixture
def tokens(tmp_path):
    path = tmp_path / "tokens"
    lines = [line_of(role, [role], role) for role in ROLES]
    lines.append(line_of("slow", ["infer"], "slow", Limits(rate=0.001, burst=2)))
    lines.append(line_of("one", ["infer"], "one", Limits(concurrent=1)))
    path.write_text("\n".join(lines))
    return path


def bearer(token):
    return (("authorization", f"Bearer {token}"),)


def table_of(served):
    async def found():
        return methods(served.server, RequestsInFlight())

    return served.loop_thread.run(found())


def answers(served, metadata):
    """Path → (status, text) of an empty call."""
    found = {}
    with grpc.insecure_channel(served.address) as channel:
        for path, method in table_of(served).items():
            try:
                if isinstance(method, StreamMethod):
                    call = channel.stream_stream(path)
                    list(call(iter((b"",)), metadata=metadata, timeout=PATIENCE_S))
                else:
                    channel.unary_unary(path)(b"", metadata=metadata, timeout=PATIENCE_S)
                found[path] = grpc.StatusCode.OK, ""
            except grpc.RpcError as error:
                found[path] = error.code(), error.details()
    return found


def codes(served, metadata):
    return {path: code for path, (code, _) in answers(served, metadata).items()}


def test_every_method_has_a_category(serve):
    rows = table_of(serve())
    assert [path for path, row in rows.items() if row.category not in RESTRICTED_CATEGORIES] == []
    assert set(RESTRICTED_CATEGORIES) | {"metrics"} == set(CATEGORIES)


def test_without_a_token_every_method_but_health_is_closed(serve, tokens):
    served = serve(auth_tokens=str(tokens))
    rows = table_of(served)

    for metadata in ((), bearer("hush"), (("x-api-key", "hush"),)):
        for path, code in codes(served, metadata).items():
            refused = code is grpc.StatusCode.UNAUTHENTICATED
            assert refused == (rows[path].category != "health"), path


def test_health_is_restricted_if_configured(serve, tokens):
    served = serve(auth_tokens=str(tokens), auth_open=())

    assert set(codes(served, ()).values()) == {grpc.StatusCode.UNAUTHENTICATED}


MAY = {
    "infer": {
        *("ServerLive", "ServerReady", "ModelReady", "Check", "Watch"),
        *("ServerMetadata", "ModelMetadata", "ModelConfig", "ModelInfer", "ModelStreamInfer"),
        *("SystemSharedMemoryStatus", "SystemSharedMemoryRegister", "SystemSharedMemoryUnregister"),
        *("CudaSharedMemoryStatus", "CudaSharedMemoryRegister", "CudaSharedMemoryUnregister"),
    },
    "read": {
        *("ServerLive", "ServerReady", "ModelReady", "Check", "Watch"),
        *("ServerMetadata", "ModelMetadata", "ModelConfig", "ModelStatistics", "RepositoryIndex"),
        *("SystemSharedMemoryStatus", "CudaSharedMemoryStatus", "TraceSetting", "LogSettings"),
    },
}
MAY["manage"] = MAY["read"] | {"RepositoryModelLoad", "RepositoryModelUnload", "poll"}


@pytest.mark.parametrize("role", ROLES)
def test_a_role_gets_as_far_as_it_may_in_every_method(serve, tokens, role):
    served = serve(auth_tokens=str(tokens))

    found = codes(served, bearer(role))

    assert {path.rpartition("/")[2] for path, code in found.items() if code not in REFUSED} == MAY[
        role
    ]
    assert grpc.StatusCode.UNAUTHENTICATED not in found.values()


def test_every_method_can_be_restricted(serve):
    rules = {category: ("key", "s") for category in RESTRICTED_CATEGORIES}
    served = serve(grpc_restricted_protocol=rules)
    key = "triton-grpc-protocol-key"

    refusal = (
        grpc.StatusCode.UNAVAILABLE,
        "This protocol is restricted, expecting header 'triton-grpc-protocol-key'",
    )

    for wrong in ((), ((key, "S"),), (("key", "s"),)):
        assert set(answers(served, wrong).values()) == {refusal}
    assert refusal not in answers(served, ((key, "s"),)).values()


def test_settings_are_readable_without_permission_to_change_them(serve, tokens):
    served = serve(auth_tokens=str(tokens))
    with grpc.insecure_channel(served.address) as channel:
        stub = pb_grpc.GRPCInferenceServiceStub(channel)
        change = pb.LogSettingsRequest()
        change.settings["log_info"].bool_param = True
        tracing = pb.TraceSettingRequest()
        tracing.settings["trace_rate"].value.append("1000")

        for call, request in ((stub.LogSettings, change), (stub.TraceSetting, tracing)):
            with pytest.raises(grpc.RpcError) as refused:
                call(request, metadata=bearer("read"), timeout=PATIENCE_S)
            assert refused.value.code() is grpc.StatusCode.PERMISSION_DENIED
            call(request, metadata=bearer("manage"), timeout=PATIENCE_S)


def test_settings_are_not_changed_where_that_is_turned_off(serve):
    served = serve(allow_remote_settings=False)
    with grpc.insecure_channel(served.address) as channel:
        stub = pb_grpc.GRPCInferenceServiceStub(channel)
        stub.LogSettings(pb.LogSettingsRequest(), timeout=PATIENCE_S)
        change = pb.LogSettingsRequest()
        change.settings["log_info"].bool_param = True
        with pytest.raises(grpc.RpcError) as refused:
            stub.LogSettings(change, timeout=PATIENCE_S)
    assert refused.value.code() is grpc.StatusCode.UNIMPLEMENTED


def test_a_refusal_has_the_reason_and_no_secret(serve, tokens, infer_request, caplog):
    served = serve(auth_tokens=str(tokens))
    with grpc.insecure_channel(served.address) as channel:
        infer = pb_grpc.GRPCInferenceServiceStub(channel).ModelInfer
        said = []
        for metadata in ((), bearer("hush"), bearer("read"), (*bearer("infer"), *bearer("infer"))):
            with pytest.raises(grpc.RpcError) as refused:
                infer(infer_request(), metadata=metadata, timeout=PATIENCE_S)
            said.append(refused.value.details())
        for metadata in (bearer("infer"), (("x-api-key", "infer"),)):
            assert infer(infer_request(), metadata=metadata, timeout=PATIENCE_S).outputs

    assert said[0].startswith("this API needs a token: 'authorization: Bearer <token>'")
    assert said[1] == "the token is not known"
    assert said[2] == "this API needs the role infer; caller 'read' has read"
    assert said[3].startswith("2 credentials were shown")
    assert "hush" not in caplog.text


def test_a_compressed_call_is_checked_too(serve, tokens, infer_request):
    served = serve(auth_tokens=str(tokens))
    with grpc.insecure_channel(served.address) as channel:
        infer = pb_grpc.GRPCInferenceServiceStub(channel).ModelInfer
        with pytest.raises(grpc.RpcError) as refused:
            infer(infer_request(), compression=grpc.Compression.Gzip, timeout=PATIENCE_S)
    assert refused.value.code() is grpc.StatusCode.UNAUTHENTICATED


def test_a_caller_beyond_its_rate_gets_an_error(serve, tokens, infer_request):
    served = serve(auth_tokens=str(tokens))
    with grpc.insecure_channel(served.address) as channel:
        infer = pb_grpc.GRPCInferenceServiceStub(channel).ModelInfer
        for _ in range(2):
            infer(infer_request(), metadata=bearer("slow"), timeout=PATIENCE_S)
        with pytest.raises(grpc.RpcError) as refused:
            infer(infer_request(), metadata=bearer("slow"), timeout=PATIENCE_S)

    assert refused.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert "caller 'slow' has sent more than its limit" in refused.value.details()


def test_each_request_of_a_stream_counts(serve, tokens, infer_request):
    served = serve(auth_tokens=str(tokens))
    with grpc.insecure_channel(served.address) as channel:
        stream = pb_grpc.GRPCInferenceServiceStub(channel).ModelStreamInfer
        requests = [infer_request(id=str(number)) for number in range(4)]
        with pytest.raises(grpc.RpcError) as refused:
            list(stream(iter(requests), metadata=bearer("slow"), timeout=PATIENCE_S))

    assert refused.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED


def test_a_stream_ends_with_the_first_request_after_its_token_was_taken_away(
    serve, tokens, infer_request
):
    served = serve(auth_tokens=str(tokens))
    requests = queue.Queue()
    with grpc.insecure_channel(served.address) as channel:
        stream = pb_grpc.GRPCInferenceServiceStub(channel).ModelStreamInfer
        answers = stream(iter(requests.get, None), metadata=bearer("infer"), timeout=PATIENCE_S)
        requests.put(infer_request())
        assert next(answers).infer_response.outputs

        tokens.write_text(line_of("read", ["read"], "read"))
        served.loop_thread.run(look(context_of(served.server).files))
        requests.put(infer_request())
        with pytest.raises(grpc.RpcError) as refused:
            next(answers)
        requests.put(None)

    assert refused.value.code() is grpc.StatusCode.UNAUTHENTICATED
    assert refused.value.details() == "the token is not known"


async def look(files):
    files.look()


def test_the_number_of_concurrent_calls_is_limited_and_a_cancelled_one_is_free(
    serve, tokens, infer_request, until
):
    served = serve(auth_tokens=str(tokens))
    with grpc.insecure_channel(served.address) as channel:
        infer = pb_grpc.GRPCInferenceServiceStub(channel).ModelInfer
        running = infer.future(infer_request("gated"), metadata=bearer("one"), timeout=PATIENCE_S)
        assert served.gate.running.wait(PATIENCE_S)
        with pytest.raises(grpc.RpcError) as refused:
            infer(infer_request(), metadata=bearer("one"), timeout=PATIENCE_S)
        assert refused.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED

        running.cancel()

        def answers():
            try:
                return infer(infer_request(), metadata=bearer("one"), timeout=PATIENCE_S)
            except grpc.RpcError as error:
                assert error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
                return None

        until(answers)


def test_without_tokens_an_address_has_the_limits(serve, infer_request):
    served = serve(limit_rate=0.001, limit_burst=1)
    with grpc.insecure_channel(served.address) as channel:
        infer = pb_grpc.GRPCInferenceServiceStub(channel).ModelInfer
        infer(infer_request(), timeout=PATIENCE_S)
        with pytest.raises(grpc.RpcError) as refused:
            infer(infer_request(), timeout=PATIENCE_S)
    assert refused.value.details().startswith("address '127.0.0.1' has sent more")


class TestCertificatesThatChange:
    @pytest.fixture
    def files(self, certificates, tmp_path):
        def put(certificate="server", root="root"):
            shutil.copy(getattr(certificates, f"{certificate}_crt"), tmp_path / "now.crt")
            shutil.copy(getattr(certificates, f"{certificate}_key"), tmp_path / "now.key")
            shutil.copy(getattr(certificates, f"{root}_crt"), tmp_path / "now.root")

        put()
        put.certificate = tmp_path / "now.crt"
        put.options = {
            "grpc_server_cert": str(tmp_path / "now.crt"),
            "grpc_server_key": str(tmp_path / "now.key"),
        }
        put.root = str(tmp_path / "now.root")
        return put

    def look(self, served):
        done = threading.Event()

        def do():
            context_of(served.server).files.look()
            done.set()

        served.loop_thread.loop.call_soon_threadsafe(do)
        assert done.wait(PATIENCE_S)

    def shown(self, served):
        """The certificate that a new connection sees."""
        return ssl.get_server_certificate(("127.0.0.1", served.frontend.port), timeout=PATIENCE_S)

    def test_new_connections_get_the_new_one_and_old_ones_live_on(self, serve, files, certificates):
        served = serve(grpc_use_ssl=True, **files.options)
        credentials = grpc.ssl_channel_credentials(certificates.root_crt.read_bytes())
        with grpc.secure_channel(f"localhost:{served.frontend.port}", credentials) as channel:
            live = pb_grpc.GRPCInferenceServiceStub(channel).ServerLive
            assert live(pb.ServerLiveRequest(), timeout=PATIENCE_S).live
            assert self.shown(served) in certificates.server_crt.read_text()

            files("stranger")
            self.look(served)

            assert self.shown(served) in certificates.stranger_crt.read_text()
            assert live(pb.ServerLiveRequest(), timeout=PATIENCE_S).live

    def test_a_broken_one_is_logged_and_the_old_one_stays(self, serve, files, certificates, caplog):
        served = serve(grpc_use_ssl=True, **files.options)

        files.certificate.write_text("nonsense")
        self.look(served)

        assert self.shown(served) in certificates.server_crt.read_text()
        assert "certificates of grpc: --grpc-server-cert" in caplog.text

    def test_clients_of_another_root_are_accepted_after_the_change(
        self, serve, files, certificates
    ):
        served = serve(grpc_use_ssl_mutual=True, grpc_root_cert=files.root, **files.options)

        def answers(name):
            credentials = grpc.ssl_channel_credentials(
                certificates.root_crt.read_bytes(),
                getattr(certificates, f"{name}_key").read_bytes(),
                getattr(certificates, f"{name}_crt").read_bytes(),
            )
            address = f"localhost:{served.frontend.port}"
            with grpc.secure_channel(address, credentials) as channel:
                live = pb_grpc.GRPCInferenceServiceStub(channel).ServerLive
                try:
                    return live(pb.ServerLiveRequest(), timeout=5).live
                except grpc.RpcError as error:
                    assert error.code() is grpc.StatusCode.UNAVAILABLE
                    return False

        assert (answers("client"), answers("stranger")) == (True, False)

        files(root="stranger")
        self.look(served)

        assert (answers("client"), answers("stranger")) == (False, True)

    def test_a_server_of_grpcio_that_had_to_restart_reads_them_once(
        self, serve, files, certificates, caplog
    ):
        """grpcio does not restart for a call whose path is no text, however often."""
        served = serve(grpc_use_ssl=True, **files.options)
        engine = served.frontend._engine
        if not isinstance(engine, GrpcioEngine):
            pytest.skip("only the library grpcio gives up")
        for _ in range(2):
            served.loop_thread.run(give_up(engine))
        assert self.shown(served) in certificates.server_crt.read_text()
        caplog.set_level(logging.INFO, "core")

        files("stranger")
        self.look(served)

        assert self.shown(served) in certificates.stranger_crt.read_text()
        assert caplog.text.count("certificates of grpc: read again") == 1


async def give_up(engine):
    """Let the library end its server by itself; wait until the next one is ready."""
    before = engine._server
    await before.stop(0)
    while engine._server is before:
        await asyncio.sleep(0.001)
