"""The table of control operations determines roles and restrictions, for each protocol."""

from types import SimpleNamespace

import pytest

from core.control import OPERATIONS, operation
from core.control.operation import Area, change, here, question
from core.errors import CoreError, Kind
from core.options import Options
from core.server import InferenceServer
from core.telemetry.tracing import Tracer
from frontends.grpc.requests_in_flight import RequestsInFlight
from frontends.grpc.table import methods
from frontends.http.router import TABLE, row
from frontends.shared.access.caller_names import CallerNames
from frontends.shared.access.roles import CATEGORIES
from frontends.shared.memory import MemoryControl

HTTP = {
    "/v2/health/live": "health.live",
    "/v2/health/ready": "health.ready",
    "/v2/models/m/ready": "health.model_ready",
    "/v2/models/stats": "health.statistics",
    "/v2/repository/index": "repository.index",
    "/v2/repository/models/m/load": "repository.load",
    "/v2/repository/models/m/unload": "repository.unload",
    "/v2/trace/setting": "settings.change_trace_settings",
    "/v2/logging": "settings.change_log_settings",
    "/v2/systemsharedmemory/status": "memory.status",
    "/v2/cudasharedmemory/region/r/register": "memory.register_cuda",
    "/v2/systemsharedmemory/unregister": "memory.unregister",
}
GRPC = {
    "ServerLive": "health.live",
    "ServerReady": "health.ready",
    "ModelReady": "health.model_ready",
    "ModelStatistics": "health.statistics",
    "RepositoryIndex": "repository.index",
    "RepositoryModelLoad": "repository.load",
    "RepositoryModelUnload": "repository.unload",
    "SystemSharedMemoryStatus": "memory.status",
    "SystemSharedMemoryRegister": "memory.register",
    "CudaSharedMemoryUnregister": "memory.unregister_cuda",
}


@pytest.fixture
def grpc_table():
    server = SimpleNamespace(options=Options.defaults(), models=SimpleNamespace(endpoints=None))
    server.tracing = Tracer(server.options)
    server.control = SimpleNamespace(areas={})
    server.shared = lambda factory: SimpleNamespace(
        policy=None,
        access_log=None,
        names=CallerNames(),
        regions=None,
        text=None,
        read=lambda intake: (),
    )
    return methods(server, RequestsInFlight())


def test_roles_and_operations_know_the_same_categories():
    assert set(operation.CATEGORIES) == set(CATEGORIES)


@pytest.mark.parametrize(("path", "name"), HTTP.items())
def test_a_route_of_http_requires_the_permission_of_its_operation(path, name):
    route = next(each for each in TABLE if each.path.fullmatch(path))

    assert route.category == OPERATIONS[name].category
    assert route.looks is ("POST" in route.methods and not OPERATIONS[name].changes)


@pytest.mark.parametrize(("method", "name"), GRPC.items())
def test_a_method_of_grpc_requires_the_permission_of_its_operation(grpc_table, method, name):
    found = grpc_table[f"/inference.GRPCInferenceService/{method}"]

    assert (found.category, found.changes) == (
        OPERATIONS[name].category,
        OPERATIONS[name].changes,
    )


def test_a_new_operation_is_one_method():
    class DrainControl(Area, name="drain"):
        @change("model-repository", otherwise="the others drain")
        async def begin(self, seconds: float = 1.0) -> None:
            """Take no more requests. After that, end."""

        @question("health", lambda results, arguments: all(results.all()))
        async def is_over(self) -> bool:
            """Return whether no request is left."""
            return True

        @here("health")
        def seconds(self) -> float:
            """Return the time that is left."""
            return 1.0

    try:
        found = {name: each for name, each in OPERATIONS.items() if name.startswith("drain.")}
        assert {name: (each.category, each.changes) for name, each in found.items()} == {
            "drain.begin": ("model-repository", True),
            "drain.is_over": ("health", False),
            "drain.seconds": ("health", False),
        }
        assert found["drain.begin"].summary == "Take no more requests. After that, end."
        assert found["drain.begin"].arguments(DrainControl(), (), {"seconds": 2}) == {"seconds": 2}
        assert set(DrainControl().handlers()) == {"drain.begin", "drain.is_over"}
        assert row("POST", "/drain", "drain.begin", None).category == "model-repository"
    finally:
        for name in [name for name in OPERATIONS if name.startswith("drain.")]:
            del OPERATIONS[name]


def test_an_operation_with_an_unknown_category_is_refused():
    with pytest.raises(CoreError) as caught:

        class TypoControl(Area, name="typo"):
            @here("helth")
            def seconds(self) -> float:
                """Return the time that is left."""
                return 1.0

    assert caught.value.message.startswith(
        "control operation 'typo.seconds' has the unknown category 'helth'; expected one of health, "
    )
    assert "typo.seconds" not in OPERATIONS


def test_an_operation_with_the_name_of_another_is_refused():
    before = OPERATIONS["repository.load"]

    with pytest.raises(CoreError) as caught:

        class OtherControl(Area, name="repository"):
            @change("health", otherwise="")
            async def load(self) -> None:
                """Do something else."""

    assert caught.value.message.startswith(
        "control operation 'repository.load' is both core.control.repository.RepositoryControl.load and "
    )
    assert OPERATIONS["repository.load"] is before


async def test_a_server_has_the_areas_of_core_and_those_that_are_added(tmp_path):
    class ExtraControl(Area, name="extra"):
        """Nothing."""

    server = InferenceServer(Options.defaults(model_repository=[str(tmp_path)]))
    assert list(server.control.areas) == ["health", "repository", "settings"]

    extra = server.control.add(ExtraControl())

    assert server.control.areas["extra"] is extra
    memory = MemoryControl.of(server)
    assert server.control.areas["memory"] is memory is MemoryControl.of(server)
    with pytest.raises(CoreError) as caught:
        server.control.add(ExtraControl())
    assert caught.value.kind is Kind.ALREADY_EXISTS
    assert caught.value.message.startswith("control area 'extra' of ")
    await server.stop(1.0)
