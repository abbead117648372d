"""The ports of platforms: no path of theirs leads past a restriction, or to what platforms may not do."""

import pytest
from core_platforms.sagemaker import SageMakerRouter, table
from core_platforms.vertex_ai import REDIRECT, VertexAIRouter

from frontends.http.interceptors import restrictions
from frontends.http.message import HttpResponse
from frontends.http.route_templates import templates
from frontends.http.router import TABLE
from frontends.shared.forms import RESTRICTED_CATEGORIES

OPEN = restrictions({})
CLOSED = restrictions({each: ("key", "secret") for each in (*RESTRICTED_CATEGORIES, "metrics")})
METHODS = ("GET", "POST", "PUT", "DELETE")
OF_SAGEMAKER = ("/ping", "/invocations", "/models", "/models/", "/models/1f", "/models/1f/invoke")
READING = {"metadata", "health", "model-config", "statistics"}


def status(found):
    return found.status if isinstance(found, HttpResponse) else 200


def routes():
    for route in TABLE:
        for path in templates(route.path.pattern):
            yield (
                route,
                path.format(model="echo", version="1", region="r", repository="q", file="f"),
            )


@pytest.fixture
def vertex(monkeypatch):
    monkeypatch.setenv("AIP_PREDICT_ROUTE", "/p")
    monkeypatch.setenv("AIP_HEALTH_ROUTE", "/h")
    return VertexAIRouter


def test_no_path_of_sagemaker_bypasses_a_restriction():
    """CVE-2026-24206, CVE-2026-24207: these did not ask."""
    rows = table("/")
    closed, free = SageMakerRouter(CLOSED, rows), SageMakerRouter(OPEN, rows)

    assert {row for row in rows for path in OF_SAGEMAKER if row.path.fullmatch(path)} == set(rows)
    for path in OF_SAGEMAKER:
        found = [status(closed.match(method, path, {})) for method in METHODS]
        assert set(found) <= {403, 400}, path  # 400: there is no such method
        assert 403 in found
        assert 200 in [status(free.match(method, path, {})) for method in METHODS]


def test_no_path_of_vertex_ai_bypasses_a_restriction(vertex):
    router = vertex(CLOSED)

    assert status(router.match("GET", "/h", {})) == 403
    assert status(router.match("POST", "/p", {})) == 403
    assert status(router.match("POST", "/p", {REDIRECT: "metrics"})) == 403
    for _, path in routes():
        assert status(router.match("POST", "/p", {REDIRECT: path[1:]})) in (400, 403), path


def test_vertex_ai_redirects_only_to_read_and_inference_paths(vertex):
    router = vertex(OPEN)

    for route, path in routes():
        reads = path.endswith(("/index", "/status", "/v2/models", "/docs/openapi.json"))
        looks = not route.is_open and (route.category in READING or reads)
        found = status(router.match("POST", "/p", {REDIRECT: path[1:]}))
        assert (found == 200) == (looks or route.category == "inference"), path
        assert found in (200, 400, 403)


def test_a_redirected_caller_needs_the_permission_of_the_target_path(vertex):
    router = vertex(OPEN)

    for route, path in routes():
        found = router.requirement("POST", "/p", {REDIRECT: path[1:]})
        if status(router.match("POST", "/p", {REDIRECT: path[1:]})) == 200:
            assert found is not None
            assert found.category == route.category
