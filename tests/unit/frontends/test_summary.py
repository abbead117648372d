"""The line "ready: …" of a terminal: models, failures, addresses."""

from types import SimpleNamespace

import pytest

from core.options import Options
from frontends.grpc.options import GrpcOptions
from frontends.http.options import HttpOptions
from frontends.metrics.options import MetricsOptions
from frontends.terminal.summary import first_address, models, places, summary


@pytest.fixture
def options():
    def make(**http):
        return Options.defaults(HttpOptions(**http), GrpcOptions(), MetricsOptions())

    return make


@pytest.fixture
def server(options):
    """Return a server with these rows in its table of models."""

    def make(*rows):
        manager = SimpleNamespace(table=lambda: list(rows))
        return SimpleNamespace(manager=manager, options=options())

    return make


def test_a_model_that_is_unloaded_or_loads_has_not_failed(server):
    found = server(
        ("ready", "1", "READY"),
        ("ready", "2", "UNAVAILABLE: Internal: no memory"),
        ("broken", "1", "UNAVAILABLE: Internal: no memory"),
        ("empty", "-", "Not loaded: No model version was found"),
        ("gone", "1", "UNAVAILABLE: unloaded"),
        ("late", "1", "LOADING"),
    )

    assert models(found) == (["ready"], ["broken", "empty"])
    assert summary(found, {}) == "1 model, http://localhost:8000, 2 failed: broken, empty"


def test_with_http_grpc_is_an_address_of_its_own(options):
    found = options()

    assert first_address(found, {}) == ["http://localhost:8000"]
    assert places(found, {}) == [
        ("gRPC", "localhost:8001"),
        ("metrics", "http://localhost:8002/metrics"),
    ]


def test_without_http_grpc_is_the_first_address_and_shown_once(options):
    found = options(allow_http=False)

    assert first_address(found, {}) == ["localhost:8001"]
    assert places(found, {}) == [("metrics", "http://localhost:8002/metrics")]
