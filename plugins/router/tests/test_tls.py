"""TLS with clients, with servers, and with both."""

import argparse
import asyncio
import http.client
import shutil
import ssl
import urllib.error
from importlib.util import find_spec
from pathlib import Path

import grpc
import pytest
from core_router.options import RouterOptions, declare
from core_router.servers.addresses import read_servers
from core_router.servers.tls import ServerCertificates
from routing.grpc_servers import Calls, request
from routing.requests import ask, inputs, outputs, until
from routing.running import Behaving, good

from core.errors import CoreError
from frontends.shared.tls import Certificates as Own

INFER = "/v2/models/who/infer"
needs_grpc = pytest.mark.skipif(
    find_spec("core_router.grpc.native.link") is None, reason="compiled without libnghttp2"
)


@pytest.fixture(scope="module")
def secure(certificates):
    """A server of core whose ports all use TLS and ask for a certificate of the client."""
    certificate, key = certificates.server
    flags = {
        f"{port}_{name}": value
        for port in ("http", "grpc")
        for name, value in {
            "use_ssl": True,
            "use_ssl_mutual": True,
            "server_cert": certificate,
            "server_key": key,
            "root_cert": certificates.root,
        }.items()
    }
    found = Behaving(7, metrics_use_ssl=True, **flags)
    yield found
    found.server.stop()


@pytest.fixture(scope="module")
def trusted(certificates):
    """What a router needs to know of such servers."""
    return ServerCertificates(certificates.root, *certificates.client)


def own(certificates, port, mutual=False):
    return Own(port, *certificates.server, certificates.root if mutual else "", mutual)


def credentials(certificates, *client):
    files = [Path(each).read_bytes() for each in (certificates.root, *reversed(client))]
    return grpc.ssl_channel_credentials(*files)


def reason(router):
    (row,) = router.servers().values()
    return row["reason"]


# the router's own ports -----------------------------------------------------


@needs_grpc
def test_http_and_grpc_with_tls_on_both_sides(route, secure, trusted, certificates):
    router = route(
        [f"https://{secure.reporting}"],
        server_certificates=trusted,
        http_certificates=own(certificates, "http"),
        grpc_certificates=own(certificates, "grpc"),
    )
    tls = certificates.trusting()
    large = [float(each) for each in range(50_000)]

    assert outputs(ask(router.port, INFER, inputs(1.0), tls=tls)) == [1, 7]
    assert outputs(ask(router.port, INFER, inputs(*large), tls=tls)) == [*large, 7]
    assert ask(router.port, "/v2/repository/index", {}, tls=tls).status == 200
    until(lambda: router.metric("core_process_threads") > 0)  # of the server, over TLS
    calls = Calls(router.grpc_port, credentials(certificates))
    assert calls.infer("who", 1.0).model_name == "who"
    calls.close()


@needs_grpc
def test_streams_pass_with_tls(route, secure, trusted, certificates):
    router = route(
        [f"https://{secure.address}"],
        server_certificates=trusted,
        grpc_certificates=own(certificates, "grpc"),
    )
    calls = Calls(router.grpc_port, credentials(certificates))
    sent = [request("who", *[float(number)] * 20_000, id=number) for number in range(10)]

    answers = list(calls.stream(iter(sent), timeout=20))
    calls.close()

    assert [each.infer_response.id for each in answers] == [str(each) for each in range(10)]
    assert {len(each.infer_response.raw_output_contents[0]) for each in answers} == {80_004}


def test_no_time_for_clients_leaves_some_for_a_handshake(route, three, certificates):
    router = route(
        [three[0].address],
        limits={"client_s": 0.0},
        http_certificates=own(certificates, "http"),
        grpc_certificates=own(certificates, "grpc"),
    )

    assert outputs(ask(router.port, INFER, inputs(1.0), tls=certificates.trusting())) == [1, 0]


@needs_grpc
def test_clients_need_a_certificate_if_the_router_asks_for_one(route, three, certificates):
    router = route(
        [three[0].address],
        http_certificates=own(certificates, "http", mutual=True),
        grpc_certificates=own(certificates, "grpc", mutual=True),
    )

    with pytest.raises((urllib.error.URLError, ConnectionError, ssl.SSLError)):
        ask(router.port, INFER, inputs(1.0), tls=certificates.trusting())
    known = certificates.trusting(certificates.client)
    assert outputs(ask(router.port, INFER, inputs(1.0), tls=known)) == [1, 0]
    stranger = Calls(router.grpc_port, credentials(certificates))
    with pytest.raises(grpc.RpcError) as refused:
        stranger.infer("who", 1.0, timeout=5)
    assert refused.value.code() is grpc.StatusCode.UNAVAILABLE
    stranger.close()
    calls = Calls(router.grpc_port, credentials(certificates, *certificates.client))
    assert calls.infer("who", 1.0).model_name == "who"
    calls.close()


def test_new_connections_use_a_renewed_certificate(route, three, certificates, tmp_path):
    files = [shutil.copy(each, tmp_path) for each in certificates.server]
    router = route([three[0].address], http_certificates=Own("http", *files, "", False))
    assert ask(router.port, INFER, inputs(1.0), tls=certificates.trusting()).status == 200

    for path, other in zip(files, certificates.issue("other", "DNS:elsewhere"), strict=True):
        shutil.copy(other, path)
    router.router.files.look()

    with pytest.raises(urllib.error.URLError, match=r"not valid for '127\.0\.0\.1'"):
        ask(router.port, INFER, inputs(1.0), tls=certificates.trusting())


def test_a_lost_response_resets_the_connection_of_the_client(route, scripted, certificates):
    """The client must not take a part for the whole."""

    async def half(reader, writer, line, body):
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nhalf")
        await writer.drain()
        await asyncio.sleep(0.05)
        writer.transport.abort()

    router = route([scripted(half).name], http_certificates=own(certificates, "http"))

    with pytest.raises((http.client.IncompleteRead, OSError)):
        ask(router.port, "/v2/models/m/infer", inputs(1.0), tls=certificates.trusting())


# servers --------------------------------------------------------------------


def test_a_request_moves_from_a_server_with_tls_that_is_lost(route, scripted, certificates):
    async def lose(reader, writer, line, body):
        writer.transport.abort()

    servers = scripted(lose, certificates.serving()), scripted(good, certificates.serving())
    router = route(
        [f"https://{each.name}" for each in servers],
        server_certificates=ServerCertificates(certificates.root),
    )

    for _ in range(10):
        reply = ask(router.port, "/v2/models/m/infer", inputs(1.0))
        assert reply.body.startswith(b"good:")


@needs_grpc
def test_only_grpc_may_use_tls(route, certificates):
    """As with Triton, which has no TLS for HTTP."""
    certificate, key = certificates.server
    server = Behaving(3, grpc_use_ssl=True, grpc_server_cert=certificate, grpc_server_key=key)
    router = route(
        [f"grpcs://{server.reporting}"], server_certificates=ServerCertificates(certificates.root)
    )
    calls = Calls(router.grpc_port)

    assert outputs(ask(router.port, INFER, inputs(1.0))) == [1, 3]
    assert calls.infer("who", 1.0).model_name == "who"
    until(lambda: router.metric("core_process_threads") > 0)
    calls.close()
    server.server.stop()


def test_a_certificate_without_a_known_issuer_is_refused(route, scripted, certificates):
    server = scripted(good, certificates.serving())
    router = route([f"https://{server.name}"])

    assert reason(router) == (
        "its certificate is not accepted: unable to get local issuer certificate; name the file with its "
        "issuer's by --server-root-cert"
    )
    assert ask(router.port, "/v2/models/m/infer", inputs(1.0)).status == 503
    insecure = route(
        [f"https://{server.name}"], server_certificates=ServerCertificates(is_insecure=True)
    )
    assert ask(insecure.port, "/v2/models/m/infer", inputs(1.0)).status == 200


def test_a_certificate_for_another_name_is_refused(route, scripted, certificates):
    server = scripted(good, certificates.serving())

    def status(name):
        router = route(
            [f"https://{server.name}"],
            server_certificates=ServerCertificates(certificates.root, name=name),
        )
        return ask(router.port, "/v2/models/m/infer", inputs(1.0)).status, reason(router)

    assert status("models.test") == (200, "")
    code, text = status("other.test")
    assert code == 503
    assert "not valid for 'other.test'" in text and text.endswith(
        "say by --server-name which name it has"
    )


def test_a_port_without_tls_is_named(route, three):
    router = route([f"https://{three[0].address}"])

    assert reason(router) == "the port does not speak TLS; write http:// for it"


# options --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "http", "grpc", "metrics", "name"),
    [
        ("https://a:1:2:3", True, True, True, ""),
        ("grpcs://a:1:2:3", False, True, False, ""),
        ("dns+https://localhost:1:2:3", True, True, True, "localhost"),
        ("http://a", False, False, False, ""),
    ],
)
def test_the_scheme_says_which_ports_use_tls(thread, text, http, grpc, metrics, name):
    (source,) = read_servers(text)
    tls = thread.run(source.addresses())[0].tls

    assert (tls.http, tls.grpc, tls.metrics, tls.name) == (http, grpc, metrics, name)
    (plain,) = read_servers(text, has_metrics_tls=False)
    assert not thread.run(plain.addresses())[0].tls.metrics


def options(*given):
    parser = argparse.ArgumentParser()
    declare(parser)
    return RouterOptions.of(parser.parse_args(given))


def test_the_options_name_the_files(certificates):
    certificate, key = certificates.server
    found = options(
        "--servers=https://a",
        "--http-use-ssl=true",
        f"--http-server-cert={certificate}",
        f"--http-server-key={key}",
        "--admin-use-ssl",
        f"--server-root-cert={certificates.root}",
    )

    assert found.http_certificates == found.admin_certificates
    assert found.http_certificates.paths == certificates.server
    assert found.grpc_certificates is None
    assert found.server_certificates.paths == (certificates.root,)


@pytest.mark.parametrize(
    ("given", "error"),
    [
        (["--servers=a", "--server-root-cert=x"], "--server-… are about TLS"),
        (["--servers=https://a", "--server-client-cert=x"], "--server-client-key belong together"),
        (["--servers=https://a", "--server-insecure", "--server-name=x"], "have no meaning"),
        (["--servers=a", "--http-server-cert=x"], "have a meaning with --http-use-ssl only"),
    ],
)
def test_options_that_contradict_are_refused(given, error):
    with pytest.raises(CoreError, match=error):
        options(*given)


def test_a_file_that_cannot_be_used_is_named(route, tmp_path):
    (tmp_path / "empty").write_text("")
    for found, error in (
        (ServerCertificates("none"), "--server-root-cert 'none' cannot be read"),
        (ServerCertificates(str(tmp_path / "empty")), "holds no certificates"),
    ):
        with pytest.raises(CoreError, match=error):
            route(["https://127.0.0.1:9"], server_certificates=found)
    with pytest.raises(CoreError, match="--http-use-ssl needs a PEM file"):
        route(["127.0.0.1:9"], http_certificates=Own("http", "", "", "", False))
