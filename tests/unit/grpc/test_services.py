"""Health, metadata, statistics, repository, shared memory: messages of the real client in and out."""

import asyncio
import tempfile
from pathlib import Path

import pytest
import tritonclient.grpc.service_pb2 as pb
from unit.grpc.described_server import DescribedServer

from core.errors import CoreError, Kind, not_found, unavailable
from frontends.grpc.call import GrpcCall
from frontends.grpc.protocol.health_messages import HealthCheckRequest, HealthCheckResponse
from frontends.grpc.requests_in_flight import RequestsInFlight
from frontends.grpc.table import methods
from frontends.shared.memory import MemoryControl, SharedMemoryRegions
from frontends.shared.memory.cuda import CudaRegions


@pytest.fixture
async def server():
    return DescribedServer()


@pytest.fixture
async def ask(server):
    table = methods(server, RequestsInFlight())

    async def call(method, request=None):
        path = f"/inference.GRPCInferenceService/{method}"
        request = request if request is not None else getattr(pb, f"{method}Request")()
        data = request if isinstance(request, bytes) else request.SerializeToString()
        return getattr(pb, f"{method}Response").FromString(
            await table[path].function(data, GrpcCall())
        )

    return call


@pytest.fixture
async def check(server):
    function = methods(server, RequestsInFlight())["/grpc.health.v1.Health/Check"].function

    async def call(service=""):
        request = HealthCheckRequest(service=service)
        return HealthCheckResponse.FromString(
            await function(request.SerializeToString(), GrpcCall())
        )

    return call


class TestHealth:
    @pytest.mark.parametrize("state", [True, False])
    async def test_the_server_reports_its_readiness(self, server, ask, state):
        server.described.state = state

        assert (await ask("ServerReady")).ready is state
        assert (await ask("ServerLive")).live is state

    @pytest.mark.parametrize("method", ["ServerLive", "ServerReady"])
    async def test_an_ending_server_answers_with_an_error(self, server, ask, method):
        server.described.state = unavailable("Server exiting")

        with pytest.raises(CoreError, match="Server exiting"):
            await ask(method)

    async def test_the_readiness_of_a_model_is_found_by_name_and_version(self, server, ask):
        assert (await ask("ModelReady", pb.ModelReadyRequest(name="m"))).ready
        assert (await ask("ModelReady", pb.ModelReadyRequest(name="m", version="2"))).ready
        assert server.described.told == [("m", -1), ("m", 2)]

    async def test_an_unknown_model_is_not_ready(self, server, ask):
        server.described.state = not_found("Request for unknown model: 'm' is not found")

        assert not (await ask("ModelReady", pb.ModelReadyRequest(name="m"))).ready

    async def test_a_version_that_is_no_number_is_refused(self, ask):
        with pytest.raises(CoreError, match="failed to get model version"):
            await ask("ModelReady", pb.ModelReadyRequest(name="m", version="x"))

    @pytest.mark.parametrize("service", ["", "inference.GRPCInferenceService", "anything"])
    async def test_the_health_protocol_reports_readiness_for_any_service(self, check, service):
        assert (await check(service)).status == HealthCheckResponse.SERVING

    @pytest.mark.parametrize("state", [False, unavailable("Server exiting")])
    async def test_the_health_protocol_reports_not_serving(self, server, check, state):
        server.described.state = state

        assert (await check()).status == HealthCheckResponse.NOT_SERVING


class TestMetadata:
    async def test_of_the_server(self, ask):
        found = await ask("ServerMetadata")

        assert (found.name, found.version) == ("triton", "1.2.3")
        assert list(found.extensions) == ["sequence", "statistics"]

    async def test_of_a_model(self, ask):
        found = await ask("ModelMetadata", pb.ModelMetadataRequest(name="m"))

        assert (found.name, found.platform) == ("m", "onnxruntime_onnx")
        assert list(found.versions) == ["1", "2"]
        (entry,) = found.inputs
        assert (entry.name, entry.datatype, list(entry.shape)) == ("x", "FP32", [-1, 4])
        assert found.outputs[0].datatype == "BYTES"

    async def test_of_an_unknown_model(self, ask):
        with pytest.raises(CoreError) as error:
            await ask("ModelMetadata", pb.ModelMetadataRequest(name="z"))
        assert error.value.kind is Kind.NOT_FOUND

    async def test_the_configuration_is_the_whole_message(self, ask):
        found = await ask("ModelConfig", pb.ModelConfigRequest(name="m"))

        assert (found.config.name, found.config.max_batch_size) == ("m", 8)


async def test_statistics_hold_every_counter(ask):
    found = await ask("ModelStatistics", pb.ModelStatisticsRequest(name="m", version="1"))

    (entry,) = found.model_stats
    assert (entry.name, entry.version) == ("m", "1")
    assert (entry.inference_count, entry.execution_count) == (2, 1)
    assert entry.last_inference > 0
    assert (entry.inference_stats.success.count, entry.inference_stats.success.ns) == (1, 100)
    assert entry.inference_stats.HasField("cache_hit")
    assert (entry.batch_stats[0].batch_size, entry.batch_stats[0].compute_infer.ns) == (2, 20)
    assert (entry.memory_usage[0].type, entry.memory_usage[0].byte_size) == ("GPU", 5)
    assert entry.response_stats["0"].success.ns == 9


class TestRepository:
    async def test_the_index_has_every_model(self, server, ask):
        found = await ask("RepositoryIndex")

        assert [(each.name, each.state) for each in found.models] == [("m", "READY"), ("never", "")]

    async def test_a_namespace_is_left_out_where_the_message_has_no_field(
        self, server, ask, monkeypatch
    ):
        entry = {"name": "m", "namespace": "/models", "version": "1", "state": "READY"}

        async def index(ready_only):
            return [entry]

        monkeypatch.setattr(server.described, "index", index)

        found = await ask("RepositoryIndex")

        assert [(each.name, each.state) for each in found.models] == [("m", "READY")]

    async def test_the_index_may_have_ready_models_only(self, server, ask):
        await ask("RepositoryIndex", pb.RepositoryIndexRequest(ready=True))

        assert server.described.told == [True]

    @pytest.mark.parametrize(
        "method", ["RepositoryIndex", "RepositoryModelLoad", "RepositoryModelUnload"]
    )
    async def test_repositories_have_no_names(self, ask, method):
        with pytest.raises(CoreError, match="'repository_name' specification") as error:
            await ask(method, getattr(pb, f"{method}Request")(repository_name="r"))
        assert error.value.kind is Kind.UNSUPPORTED

    async def test_a_load_may_bring_configuration_and_files(self, server, ask):
        request = pb.RepositoryModelLoadRequest(model_name="m")
        request.parameters["config"].string_param = "{}"
        request.parameters["file:1/model"].bytes_param = b"\0\1"

        await ask("RepositoryModelLoad", request)

        assert server.described.told == [("m", {"config": "{}", "file:1/model": b"\0\1"})]

    @pytest.mark.parametrize(
        ("name", "value", "text"),
        [
            ("config", {"bytes_param": b""}, "'config', expected string_param."),
            ("config", {}, "'config', expected string_param."),
            ("file:x", {"string_param": ""}, "'file:x', expected bytes_param."),
        ],
    )
    async def test_a_load_parameter_of_the_wrong_kind_is_refused(self, ask, name, value, text):
        request = pb.RepositoryModelLoadRequest(model_name="m")
        request.parameters[name].MergeFrom(pb.ModelRepositoryParameter(**value))

        with pytest.raises(CoreError) as error:
            await ask("RepositoryModelLoad", request)
        assert error.value.message == f"invalid value type for load parameter {text}"

    async def test_a_load_parameter_that_is_none_is_refused(self, ask):
        request = pb.RepositoryModelLoadRequest(model_name="m")
        request.parameters["x"].bool_param = True

        with pytest.raises(CoreError) as error:
            await ask("RepositoryModelLoad", request)
        assert error.value.message == "unrecognized load parameter 'x'."

    async def test_a_load_continues_without_its_caller(self, server, ask):
        server.described.go.clear()
        task = asyncio.ensure_future(
            ask("RepositoryModelLoad", pb.RepositoryModelLoadRequest(model_name="m"))
        )
        await asyncio.sleep(0)

        task.cancel()
        await asyncio.wait([task])
        server.described.go.set()
        await asyncio.sleep(0)

        assert server.described.told == [("m", {})]

    async def test_an_unload_may_take_dependents_along(self, server, ask):
        request = pb.RepositoryModelUnloadRequest(model_name="m")
        await ask("RepositoryModelUnload", request)
        request.parameters["unload_dependents"].bool_param = True
        await ask("RepositoryModelUnload", request)

        assert server.described.told == [("m", False), ("m", True)]

    async def test_unload_dependents_is_a_bool(self, ask):
        request = pb.RepositoryModelUnloadRequest(model_name="m")
        request.parameters["unload_dependents"].string_param = "true"

        with pytest.raises(CoreError) as error:
            await ask("RepositoryModelUnload", request)
        assert error.value.message == (
            "invalid value type for 'unload_dependents' parameter, expected bool_param."
        )


async def test_every_method_of_the_clients_is_in_the_table(server):
    service = pb.DESCRIPTOR.services_by_name["GRPCInferenceService"]

    table = methods(server, RequestsInFlight())

    assert table.keys() == {
        *(f"/inference.GRPCInferenceService/{method.name}" for method in service.methods),
        "/grpc.health.v1.Health/Check",
        "/grpc.health.v1.Health/Watch",
    }


@pytest.mark.parametrize(
    "method", ["ServerLive", "ServerMetadata", "ModelMetadata", "RepositoryModelLoad"]
)
async def test_bytes_that_are_no_message_are_invalid(ask, method):
    with pytest.raises(CoreError) as error:
        await ask(method, b"\xff" * 50)
    assert error.value.kind is Kind.INVALID
    assert error.value.message == (f"the request of 50 bytes is no inference.{method}Request")


class TestSharedMemory:
    async def test_a_region_is_registered_listed_and_forgotten(self, ask):
        with tempfile.NamedTemporaryFile(dir="/dev/shm") as file:
            file.truncate(64)
            key = "/" + Path(file.name).name
            place = {"name": "r", "key": key, "byte_size": 64}

            await ask("SystemSharedMemoryRegister", pb.SystemSharedMemoryRegisterRequest(**place))
            found = (await ask("SystemSharedMemoryStatus")).regions
            assert list(found) == ["r"]
            assert (found["r"].key, found["r"].offset, found["r"].byte_size) == (key, 0, 64)

            await ask(
                "SystemSharedMemoryUnregister", pb.SystemSharedMemoryUnregisterRequest(name="r")
            )
            assert not (await ask("SystemSharedMemoryStatus")).regions

    async def test_memory_of_gpus_is_not_there(self, ask):
        assert not (await ask("CudaSharedMemoryStatus")).regions
        await ask("CudaSharedMemoryUnregister")
        with pytest.raises(CoreError) as error:
            await ask("CudaSharedMemoryRegister", pb.CudaSharedMemoryRegisterRequest(name="r"))
        assert error.value.kind is Kind.INVALID
        assert error.value.message == (
            "failed to register CUDA shared memory region: 'r', GPUs not supported"
        )

    @pytest.mark.parametrize("kind", ["System", "Cuda"])
    async def test_without_leave_only_the_status_answers(self, server, kind):
        regions = SharedMemoryRegions(allowed=False)
        server.memory = MemoryControl(regions, CudaRegions(regions))
        table = methods(server, RequestsInFlight())
        base = f"/inference.GRPCInferenceService/{kind}SharedMemory"

        assert await table[base + "Status"].function(b"", GrpcCall()) == b""
        for method in ("Register", "Unregister"):
            with pytest.raises(CoreError) as error:
                await table[base + method].function(b"", GrpcCall())
            assert error.value.kind is Kind.UNSUPPORTED
            assert error.value.message == (
                "Client shared memory is disabled. Start the server with "
                "'--allow-client-shm=true' to enable."
            )
