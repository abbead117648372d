"""APIs that are restricted: every route and every method of a kind, and by no other way."""

import grpc
import pytest
import tritonclient.grpc.service_pb2 as pb

from frontends.grpc.requests_in_flight import RequestsInFlight
from frontends.grpc.table import methods
from frontends.http.route_templates import templates
from frontends.http.router import table
from frontends.shared.forms import RESTRICTED_CATEGORIES

ALL = {category: ("secret-name", "secret-value") for category in RESTRICTED_CATEGORIES}


def paths(route):
    for path in templates(route.path.pattern):
        yield path.format(model="echo", version="1", region="r", repository="q", file="f")


def test_every_route_has_a_kind_that_can_be_restricted(server):
    assert {route.category for route in table(server.server.control.areas)} <= set(
        RESTRICTED_CATEGORIES
    )


def test_no_route_bypasses_a_restriction(serve):
    """CVE-2026-24206, CVE-2026-24207: endpoints beside the usual ones did not ask."""
    served = serve(http_restricted_api=ALL, grpc_restricted_protocol=ALL)
    open_ones = [
        (method, path)
        for route in table(served.server.control.areas)
        if not route.is_open  # files without anything of this server
        for path in paths(route)
        for method in ("GET", "POST", "PUT")
        if served.ask(method, path, b"{}").status != 403
    ]

    assert open_ones == []
    with_secret = served.ask("GET", "/v2/health/live", headers={"secret-name": "secret-value"})
    assert with_secret.status == 200
    for name, value in (
        ("secret-name", "secret"),
        ("secret-name", "SECRET-VALUE"),
        ("x", "secret-value"),
    ):
        assert served.ask("GET", "/v2/health/live", headers={name: value}).status == 403


@pytest.mark.parametrize(
    "path",
    [
        "//v2/health/live",
        "/v2//health/live",
        "/v2/./health/live",
        "/V2/health/live",
        "/v2/health/live/",
    ],
)
def test_another_spelling_of_a_path_is_another_path(serve, path):
    served = serve(http_restricted_api={"health": ("secret-name", "secret-value")})

    assert served.ask("GET", path).status in (403, 404)


def test_no_method_of_grpc_bypasses_a_restriction(serve):
    served = serve(http_restricted_api=ALL, grpc_restricted_protocol=ALL)

    for path in methods(served.server, RequestsInFlight()):
        stream = path.endswith(("ModelStreamInfer", "Watch"))
        if stream:
            call = served.channel_now().stream_stream(path)(iter([b""]), timeout=30)
            with pytest.raises(grpc.RpcError) as error:
                list(call)
        else:
            with pytest.raises(grpc.RpcError) as error:
                served.channel_now().unary_unary(path)(b"", timeout=30)
        assert error.value.code() is grpc.StatusCode.UNAVAILABLE, path
        assert "restricted" in error.value.details()


def test_every_method_of_the_protocol_is_one_that_is_checked(serve):
    served = serve()
    service = pb.DESCRIPTOR.services_by_name["GRPCInferenceService"]

    found = methods(served.server, RequestsInFlight())

    assert {f"/{service.full_name}/{method.name}" for method in service.methods} <= set(found)
