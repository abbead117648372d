"""The table of control operations determines roles and restrictions, for each protocol."""

from types import SimpleNamespace

import pytest

from core.control import OPERATIONS
from core.control.operation import Area, change, here, question
from core.options import Options
from core.telemetry.tracing import Tracer
from frontends.grpc.requests_in_flight import RequestsInFlight
from frontends.grpc.table import methods
from frontends.http.router import TABLE, row
from frontends.shared.access.roles import CATEGORIES

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
    server.control = SimpleNamespace(memory=None)
    server.shared_memory = None
    server.shared = lambda factory: SimpleNamespace(policy=None, access_log=None)
    return methods(server, RequestsInFlight())


def test_every_category_of_an_operation_is_one_that_roles_know():
    assert {each.category for each in OPERATIONS.values()} <= set(CATEGORIES)


@pytest.mark.parametrize(("path", "name"), HTTP.items())
def test_a_route_of_http_requires_the_permission_of_its_operation(path, name):
    route = next(each for each in TABLE if each.path.fullmatch(path))

    assert route.category == OPERATIONS[name].category
    assert route.looks is ("GET" not in route.methods and not OPERATIONS[name].changes)


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
