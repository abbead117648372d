"""Certificates that change while the server runs: those of new connections, and broken ones."""

import asyncio
import shutil
import socket
import ssl

import pytest

from frontends.metrics.frontend import MetricsFrontend
from frontends.shared.context import context_of

LIVE = b"GET /v2/health/live HTTP/1.1\r\nHost: x\r\n\r\n"


@pytest.fixture
def files(certificates, tmp_path):
    """The server's own copies, and how they are replaced."""

    def put(certificate="server", root="root"):
        shutil.copy(getattr(certificates, f"{certificate}_crt"), tmp_path / "now.crt")
        shutil.copy(getattr(certificates, f"{certificate}_key"), tmp_path / "now.key")
        shutil.copy(getattr(certificates, f"{root}_crt"), tmp_path / "now.root")

    put()
    put.options = {
        "http_use_ssl": True,
        "http_server_cert": str(tmp_path / "now.crt"),
        "http_server_key": str(tmp_path / "now.key"),
    }
    put.root = str(tmp_path / "now.root")
    put.folder = tmp_path
    return put


def trusting(path, own=None):
    context = ssl.create_default_context(cafile=path)
    context.check_hostname = False  # the other certificates have no host name
    if own is not None:
        context.load_cert_chain(*own)
    return context


async def connect(port, context):
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
    return reader, writer


async def alive(reader, writer):
    writer.write(LIVE)
    line = await asyncio.wait_for(reader.readline(), 10)
    await reader.readuntil(b"\r\n\r\n")
    return line.startswith(b"HTTP/1.1 200")


async def test_new_connections_get_the_new_certificate_and_old_ones_live_on(
    open_with, files, certificates
):
    async with open_with(**files.options) as site:
        port = site.frontend.port
        before = await connect(port, trusting(certificates.root_crt))
        assert await alive(*before)

        files("stranger")
        context_of(site.server).files.look()

        after = await connect(port, trusting(certificates.stranger_crt))
        assert await alive(*after)
        assert await alive(*before)
        with pytest.raises(ssl.SSLCertVerificationError):
            await connect(port, trusting(certificates.root_crt))
        for _, writer in (before, after):
            writer.close()


@pytest.mark.parametrize("broken", ["", "no certificate", "a key of another"])
async def test_a_broken_file_is_logged_and_the_old_one_stays(
    open_with, files, certificates, caplog, broken
):
    async with open_with(**files.options) as site:
        if broken == "a key of another":
            shutil.copy(certificates.stranger_key, files.folder / "now.key")
        else:
            (files.folder / "now.crt").write_text(broken)
        context_of(site.server).files.look()

        reader, writer = await connect(site.frontend.port, trusting(certificates.root_crt))
        assert await alive(reader, writer)
        writer.close()
        assert "certificates of http: --http-server-cert" in caplog.text
        assert "what was read before stays in use" in caplog.text

        files("stranger")
        context_of(site.server).files.look()
        _, writer = await connect(site.frontend.port, trusting(certificates.stranger_crt))
        writer.close()


def again(port, context, session=None):
    """(session, whether it went on with the one before) of a connection that was answered."""
    with (
        socket.create_connection(("127.0.0.1", port), 10) as bare,
        context.wrap_socket(bare, server_hostname="localhost", session=session) as connection,
    ):
        connection.sendall(LIVE)
        if not connection.recv(1000).startswith(b"HTTP/1.1 200"):
            raise ConnectionError("the server has closed the connection")
        return connection.session, connection.session_reused


async def test_an_earlier_session_is_invalid_with_another_root(open_with, files, certificates):
    mutual = {"http_use_ssl_mutual": True, "http_root_cert": files.root}
    ours = trusting(certificates.root_crt, (certificates.client_crt, certificates.client_key))
    async with open_with(**files.options, **mutual) as site:
        port = site.frontend.port
        session, _ = await asyncio.to_thread(again, port, ours)
        session, reused = await asyncio.to_thread(again, port, ours, session)
        assert reused

        files(root="stranger")
        context_of(site.server).files.look()

        with pytest.raises((ssl.SSLError, OSError)):
            await asyncio.to_thread(again, port, ours, session)


async def test_clients_of_a_root_that_was_taken_away_are_refused(open_with, files, certificates):
    mutual = {"http_use_ssl_mutual": True, "http_root_cert": files.root}
    ours = trusting(certificates.root_crt, (certificates.client_crt, certificates.client_key))
    theirs = trusting(certificates.root_crt, (certificates.stranger_crt, certificates.stranger_key))
    async with open_with(**files.options, **mutual) as site:
        port = site.frontend.port
        before = await connect(port, ours)
        assert await alive(*before)
        with pytest.raises((ssl.SSLError, OSError, asyncio.IncompleteReadError)):
            assert await alive(*await connect(port, theirs))

        files(root="stranger")
        context_of(site.server).files.look()

        after = await connect(port, theirs)
        assert await alive(*after)
        assert await alive(*before)
        with pytest.raises((ssl.SSLError, OSError, asyncio.IncompleteReadError)):
            assert await alive(*await connect(port, ours))
        for _, writer in (before, after):
            writer.close()


async def test_metrics_have_the_certificates_of_http_and_their_renewal(
    open_with, files, certificates
):
    more = {"metrics_use_ssl": True, "metrics_address": "127.0.0.1", "metrics_port": 0}
    async with open_with(**files.options, **more) as site:
        metrics = MetricsFrontend(site.server)
        await metrics.start()
        try:
            for name, root in (("server", "root"), ("stranger", "stranger")):
                files(name)
                context_of(site.server).files.look()
                trusted = trusting(getattr(certificates, f"{root}_crt"))
                reader, writer = await connect(metrics.port, trusted)
                writer.write(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
                assert b"200" in await asyncio.wait_for(reader.readline(), 10)
                writer.close()
        finally:
            await metrics.stop(1)
