"""Access: who may do what on the port for operators, and by which names it is reached."""

import socket
from types import SimpleNamespace

import pytest
from aiohttp.test_utils import make_mocked_request
from core_router.operate.access import Access
from core_router.operate.host_names import read_host_names
from routing.requests import ask, inputs
from routing.running import good
from routing.tokens import ROLES, bearer

from core.errors import CoreError

pytest.importorskip("core_console", reason="core-web-console is not installed")

INFER = "/v2/models/{}/infer"


@pytest.mark.parametrize(
    "foreign",
    [
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://[evil"},
    ],
)
def test_a_page_of_another_site_changes_nothing(router, three, foreign):
    path = f"/servers/{three[0].name}/drain"

    assert ask(router.admin, path, method="POST", headers=foreign).status == 403
    assert ask(router.admin, INFER.format("who"), inputs(1.0), headers=foreign).status == 403
    assert not router.servers()[three[0].name]["drained"]


@pytest.mark.parametrize(
    ("origin", "status"),
    [("http://Ops.example:8003", 200), ("http://ops.example", 403), ("http://evil.example", 403)],
)
def test_the_page_of_a_public_address_is_known_by_its_origin(route, scripted, origin, status):
    server = scripted(good)
    router = route(
        [server.name], admin_address="0.0.0.0", admin_hosts=["ops.example"], console=True
    )
    headers = {"Host": "ops.example:8003", "Origin": origin}

    answer = ask(router.admin, f"/servers/{server.name}/drain", method="POST", headers=headers)

    assert answer.status == status


@pytest.mark.parametrize(
    "host", ["evil.example:8003", "localhost.evil.example", "[evil", "10.0.0.5"]
)
def test_a_name_of_another_site_that_points_at_this_machine_gets_nothing(router, three, host):
    paths = ["/servers", "/metrics", "/console/session", "/v2/models/who"]

    answers = [ask(router.admin, each, headers={"Host": host}) for each in paths]
    drain = ask(
        router.admin, f"/servers/{three[0].name}/drain", method="POST", headers={"Host": host}
    )

    assert [each.status for each in (*answers, drain)] == [403] * 5
    assert f"Host is '{host}'" in drain.json["error"]


@pytest.mark.parametrize("host", ["localhost:9000", "LOCALHOST", "127.0.0.2:8003", "[::1]:8003"])
def test_names_of_this_machine_need_no_token(router, host):
    assert ask(router.admin, "/servers", headers={"Host": host}).status == 200


@pytest.mark.parametrize(
    "host", ["evil.example:8003", "core.evil.example", "10.0.0.5.example", "[evil"]
)
def test_a_public_name_that_points_at_a_public_address_gets_nothing(route, scripted, host):
    server = scripted(good)
    router = route([server.name], admin_address="0.0.0.0", console=True)
    paths = ["/servers", "/metrics", "/console/session", "/v2/models/who"]

    answers = [ask(router.admin, each, headers={"Host": host}) for each in paths]
    drain = ask(
        router.admin, f"/servers/{server.name}/drain", method="POST", headers={"Host": host}
    )

    assert [each.status for each in (*answers, drain)] == [403] * 5
    assert f"Host is '{host}'" in drain.json["error"] and "--admin-hosts" in drain.json["error"]


@pytest.mark.parametrize(
    "host",
    [
        *("10.0.0.5:8003", "[2001:db8::5]", "localhost", "router:8003", "ROUTER.", "gpu.localhost"),
        *("router.serving.svc", "router.serving.svc.cluster.local:8003", "gpu1.internal"),
    ],
)
def test_addresses_and_private_names_reach_a_public_address(route, scripted, host):
    router = route([scripted(good).name], admin_address="0.0.0.0")

    assert ask(router.admin, "/servers", headers={"Host": host}).status == 200


@pytest.mark.parametrize("address", ["0.0.0.0", "127.0.0.1"])
@pytest.mark.parametrize(
    ("given", "status"),
    [("ops.example", 200), ("a.example, OPS.example.", 200), ("*", 200), ("example", 403)],
)
def test_the_names_of_a_port_are_configured(route, scripted, address, given, status):
    router = route([scripted(good).name], admin_address=address, admin_hosts=read_host_names(given))

    assert ask(router.admin, "/servers", headers={"Host": "ops.example:80"}).status == status


@pytest.mark.parametrize(
    "given", ["http://ops.example", "ops.example:8003", "a,b/c", "*.example", "a b"]
)
def test_what_is_no_host_name_is_refused(given):
    with pytest.raises(CoreError, match=r"--admin-hosts: .* is no host name"):
        read_host_names(given)


def test_a_wrong_token_permits_nothing(tokens):
    access = Access(str(tokens), SimpleNamespace(add=lambda *watched: None), None)

    def permits(token):
        request = make_mocked_request("GET", "/", {"Authorization": f"Bearer {token}"})
        return access.permits(request, "statistics", False)

    assert permits("token-ben") and not permits("wrong")


def test_with_tokens_a_proxy_may_have_its_own_name(route, scripted, tokens):
    router = route([scripted(good).name], admin_tokens=str(tokens))

    answer = ask(router.admin, "/servers", headers={"Host": "ops.example", **bearer("ben")})

    assert answer.status == 200


@pytest.mark.parametrize(
    ("path", "value", "statuses"),
    [
        ("/console", None, (200, 200, 200, 200)),
        ("/servers", None, (401, 403, 200, 200)),
        ("/metrics", None, (401, 403, 200, 200)),
        ("/console/notices", None, (401, 403, 200, 200)),
        ("/servers/m/drain", {}, (401, 403, 403, 404)),
        ("/v2/repository/models/m/load", {}, (401, 403, 403, 200)),
        ("/v2/repository/x/models/m/unload", {}, (401, 403, 403, 200)),
        ("/v2/models/m/infer", {}, (401, 200, 403, 403)),
        ("/v2/models/m%2Finfer", {}, (401, 200, 403, 403)),
        ("/v2/models/m/config?x=1", None, (401, 200, 200, 200)),
        ("/v2/models/m/versions/1", None, (401, 200, 200, 200)),
        ("/v2/health/ready", None, (401, 200, 200, 200)),
        ("/v2/models/m", {}, (401, 403, 403, 200)),
        ("/v2/models/m/settings", None, (401, 403, 200, 200)),
        ("/v2/models/m%2Fsettings", None, (401, 403, 200, 200)),
        ("/v2/models/m/settings", {}, (401, 403, 403, 200)),
        ("/v2/logging", None, (401, 403, 200, 200)),
        ("/v2/captures", None, (401, 403, 403, 200)),
        ("/v2/jobs", {}, (401, 403, 403, 200)),
    ],
)
def test_tokens_have_the_roles_of_a_server(route, scripted, tokens, path, value, statuses):
    router = route([scripted(good).name], admin_tokens=str(tokens))
    headers = ({}, *map(bearer, ROLES))

    assert (
        tuple(ask(router.admin, path, value, headers=each).status for each in headers) == statuses
    )


def test_a_request_without_a_host_comes_from_no_page(route, scripted):
    """A health check over HTTP/1.0. The server looks no name up for it."""
    router = route([scripted(good).name], admin_address="0.0.0.0")
    with socket.create_connection(("127.0.0.1", router.admin), timeout=10) as connection:
        connection.sendall(b"GET /servers HTTP/1.0\r\n\r\n")
        assert connection.recv(100).split(b"\r\n")[0].endswith(b" 200 OK")
