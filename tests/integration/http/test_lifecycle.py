"""Opening and closing the port."""

import asyncio
import socket
import time

import pytest

from core.errors import CoreError, Kind
from core.options import Options
from frontends.http.frontend import HttpFrontend
from frontends.http.options import HttpOptions

GATED = "/v2/models/gated/infer"


@pytest.fixture(params=[False, True], ids=["plain", "tls"])
def over_tls(request):
    """Run all tests here over TLS, too."""
    return request.param


def second(site, **options):
    """Another frontend of the same server, on the same port if the options name no other."""
    options = {
        "http_address": "127.0.0.1",
        "http_port": site.frontend.port,
        "http_lane": HttpOptions.of(site.server.options).http_lane,
        **options,
    }

    class View:
        def __init__(self, server):
            self.server = server
            self.options = Options.defaults(**options)

        def __getattr__(self, name):
            return getattr(self.server, name)

    return HttpFrontend(View(site.server))


async def test_the_port_is_in_the_log(site, caplog):
    with caplog.at_level("INFO", "core"):
        other = HttpFrontend(site.server)
        await other.start()
    assert f"Started HTTPService at 127.0.0.1:{other.port}" in caplog.text
    await other.stop(1)


async def test_it_is_enabled_by_its_option(open_with):
    async with open_with() as site:
        assert (site.frontend.name, site.frontend.enabled) == ("http", True)


async def test_a_port_in_use_is_an_error_that_names_it(site):
    with pytest.raises(CoreError) as caught:
        await second(site).start()
    assert caught.value.kind is Kind.UNAVAILABLE
    port = site.frontend.port
    assert caught.value.message.startswith(f"Socket '127.0.0.1:{port}' already in use; ")
    assert "choose another port with --http-port" in caught.value.message


async def test_an_address_of_another_machine_is_an_error_that_names_it(site):
    with pytest.raises(CoreError, match=r"cannot listen at '192.0.2.1:8000'"):
        await second(site, http_address="192.0.2.1", http_port=8000).start()


async def test_a_port_may_be_shared_if_both_servers_allow_it(open_with):
    async with open_with(reuse_http_port=True) as site:
        other = second(site, reuse_http_port=True)
        await other.start()
        await other.stop(1)


async def test_stopping_closes_idle_connections_at_once(site):
    used, unused = await site.connect(), await site.connect()
    assert (await used.ask("GET", "/v2/health/live")).status == 200
    begun = time.monotonic()

    await site.frontend.stop(30)

    assert await used.rest() == b"" and await unused.rest() == b""
    assert time.monotonic() - begun < 5


async def test_stopping_waits_for_running_requests_and_refuses_new_ones(site, document, message):
    busy, idle, port = await site.connect(), await site.connect(), site.frontend.port
    # The second, pipelined request comes too late.
    busy.send(message("POST", GATED, document(1)) + message("GET", "/v2/health/live"))
    await asyncio.wait_for(site.backend.running.wait(), 10)

    stopping = asyncio.ensure_future(site.frontend.stop(30))
    assert await idle.rest() == b""
    with pytest.raises(OSError):
        await asyncio.open_connection("127.0.0.1", port)
    assert not stopping.done()
    site.backend.gate.set()

    reply = await busy.reply()
    assert reply.json["outputs"][0]["data"] == [1]
    assert await busy.rest() == b""
    await asyncio.wait_for(stopping, 10)


async def test_stopping_waits_for_a_slow_reader(site, message):
    connection = await site.connect()
    connection.writer.get_extra_info("socket").setsockopt(
        socket.SOL_SOCKET, socket.SO_RCVBUF, 65536
    )
    body = bytes(8_000_000)
    connection.send(
        message("POST", "/v2/models/echo/infer", body, {"Inference-Header-Content-Length": "0"})
    )
    head = await connection.reader.readuntil(b"\r\n\r\n")
    stopping = asyncio.ensure_future(site.frontend.stop(30))

    rest = await connection.rest()

    assert head.startswith(b"HTTP/1.1 200") and rest.endswith(body)
    await asyncio.wait_for(stopping, 10)


async def test_stopping_aborts_requests_that_exceed_the_time(site, document, message):
    busy = await site.connect()
    busy.send(message("POST", GATED, document(1)))
    await asyncio.wait_for(site.backend.running.wait(), 10)
    begun = time.monotonic()

    await site.frontend.stop(0.2)

    assert await busy.rest() == b""
    assert time.monotonic() - begun < 5
    assert site.backend.requests[0].cancelled


async def test_stopping_twice_or_before_the_start_has_no_effect(site):
    await site.frontend.stop(1)
    await site.frontend.stop(1)
    await HttpFrontend(site.server).stop(1)
