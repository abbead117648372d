"""The metrics frontend over a real socket."""

import asyncio
from types import SimpleNamespace

import aiohttp
import pytest

from core import plugins
from core.control.metrics.watch import Watch
from core.errors import CoreError, Kind
from core.options import Options
from core.system.account import MemoryAccount
from core.telemetry.families import Family, Sample
from frontends.metrics.frontend import MetricsFrontend
from frontends.shared.access.tokens import line_of
from frontends.shared.context import FrontendContext


async def metrics():
    return [Family("nv_x", "gauge", "Help", [Sample({}, 1)])]


def server(**options):
    found = SimpleNamespace(
        options=Options.defaults(metrics_address="127.0.0.1", metrics_port=0, **options),
        account=MemoryAccount(1 << 30, 0),
        tracing=SimpleNamespace(on=False),
        control=SimpleNamespace(health=SimpleNamespace(metrics=metrics)),
    )
    found.watch = Watch(found.options)
    found.on_reload = lambda listener: None
    found.shared_table = lambda name: None
    found.shared = lambda factory: factory(found)  # while the context is made
    context = FrontendContext(found)
    found.shared = lambda factory: context
    return found


@pytest.fixture
async def frontend():
    found = MetricsFrontend(server())
    await found.start()
    yield found
    await found.stop(1.0)


async def ask(frontend, method, path):
    url = f"http://127.0.0.1:{frontend.port}{path}"
    async with aiohttp.ClientSession() as client, client.request(method, url) as answer:
        return answer.status, answer.headers["Content-Type"], await answer.text()


@pytest.mark.parametrize("path", ["/metrics", "/metrics?x=1"])
async def test_metrics_are_plain_text(frontend, path):
    status, content_type, text = await ask(frontend, "GET", path)

    assert (status, content_type) == (200, "text/plain; charset=utf-8")
    assert text.endswith("nv_x 1\n")


@pytest.mark.parametrize("path", ["/", "/metrics/", "/v2"])
async def test_other_paths_are_empty(frontend, path):
    assert await ask(frontend, "GET", path) == (200, "text/plain; charset=utf-8", "")


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE"])
async def test_other_methods_are_refused(frontend, method):
    status, _, text = await ask(frontend, method, "/metrics")

    assert (status, text) == (405, '{"error":"Method Not Allowed"}')


async def told(frontend, *pieces):
    """Return all data from the server, on one connection for each piece; the others stay open."""
    streams = [await asyncio.open_connection("127.0.0.1", frontend.port) for _ in pieces]
    try:
        for (_, writer), piece in zip(streams, pieces, strict=True):
            writer.write(piece)
        return await asyncio.wait_for(streams[-1][0].read(), 10)
    finally:
        for _, writer in streams:
            writer.close()


@pytest.fixture
async def bounded():
    found = MetricsFrontend(server(http_header_timeout_secs=0.05, http_max_connections=1))
    await found.start()
    yield found
    await found.stop(1.0)


async def test_a_request_that_does_not_come_is_waited_for_as_over_http(bounded):
    assert (await told(bounded, b"GET /metr")).startswith(b"HTTP/1.1 408 ")


async def test_there_are_as_many_connections_as_over_http(bounded):
    assert (await told(bounded, b"", b"")).startswith(b"HTTP/1.1 503 ")


async def test_an_invalid_request_is_refused_and_not_logged(frontend, caplog):
    answer = await told(frontend, b"GET http://[ HTTP/1.1\r\nHost: x\r\n\r\n")

    assert answer.startswith(b"HTTP/1.1 400 ")
    assert b"Server: core\r\n" in answer
    assert caplog.text == ""


async def test_a_port_in_use_is_named(frontend):
    second = server()
    second.options = second.options.changed(metrics_port=frontend.port)

    with pytest.raises(
        CoreError, match=f"Socket '127.0.0.1:{frontend.port}' already in use"
    ) as error:
        await MetricsFrontend(second).start()

    assert error.value.kind is Kind.UNAVAILABLE


async def test_an_address_of_another_machine_is_named():
    elsewhere = server()
    elsewhere.options = elsewhere.options.changed(metrics_address="192.0.2.1")

    with pytest.raises(CoreError, match=r"cannot listen at '192\.0\.2\.1:0': ") as error:
        await MetricsFrontend(elsewhere).start()

    assert error.value.kind is Kind.UNAVAILABLE


async def test_it_can_be_turned_off():
    assert MetricsFrontend(server()).enabled
    assert not MetricsFrontend(server(allow_metrics=False)).enabled


async def test_no_listener_stays_after_the_end(frontend):
    port = frontend.port

    await frontend.stop(1.0)
    await frontend.stop(1.0)

    with pytest.raises(aiohttp.ClientConnectionError):
        await ask(SimpleNamespace(port=port), "GET", "/metrics")


async def _answers(options, path="/metrics", **headers):
    """Return status, headers and text for a request with these headers."""
    found = MetricsFrontend(server(**options))
    await found.start()
    try:
        url = f"http://127.0.0.1:{found.port}{path}"
        async with aiohttp.ClientSession() as client, client.get(url, headers=headers) as answer:
            return answer.status, answer.headers, await answer.text()
    finally:
        await found.stop(1.0)


@pytest.mark.parametrize("path", ["/metrics", "/", "/anything"])
async def test_with_an_access_policy_every_path_needs_read_permission(tmp_path, path):
    (tmp_path / "tokens").write_text("\n".join(line_of(r, [r], r) for r in ("infer", "read")))
    options = {"auth_tokens": str(tmp_path / "tokens")}

    async def ask(**headers):
        return await _answers(options, path, **headers)

    status, headers, text = await ask()
    assert (status, headers["WWW-Authenticate"]) == (401, 'Bearer realm="core"')
    assert "nv_x" not in text
    assert (await ask(Authorization="Bearer infer"))[0] == 403
    assert (await ask(Authorization="Bearer read"))[0] == 200


async def test_metrics_can_be_open(tmp_path):
    (tmp_path / "tokens").write_text(line_of("a", ["read"], "a"))
    options = {"auth_tokens": str(tmp_path / "tokens"), "auth_open": ("metrics",)}

    assert (await _answers(options))[0] == 200


async def test_metrics_can_be_restricted():
    options = {"http_restricted_api": {"metrics": ("key", "s")}}

    status, _, text = await _answers(options)
    assert (status, text) == (403, '{"error":"This API is restricted, expecting header \'key\'"}')
    assert (await _answers(options, key="s"))[0] == 200


@pytest.mark.parametrize(
    "accept", ["application/openmetrics-text;version=1.0.0", "text/plain", "application/json"]
)
async def test_the_text_is_the_same_whatever_a_scraper_would_like(frontend, accept):
    """OpenMetrics would change the name of every counter."""
    url = f"http://127.0.0.1:{frontend.port}/metrics"
    async with (
        aiohttp.ClientSession(headers={"Accept": accept}) as client,
        client.get(url) as answer,
    ):
        assert answer.headers["Content-Type"] == "text/plain; charset=utf-8"
        assert (await answer.text()).endswith("nv_x 1\n")


async def test_the_lag_of_the_loop_is_measured_while_it_serves():
    plugins.load_hooks()
    watched = server()
    frontend = MetricsFrontend(watched)

    await frontend.start()
    names = {family.name for family in watched.watch.families()}
    await frontend.stop(1.0)

    assert "core_event_loop_lag_seconds" in names
    assert "core_event_loop_lag_seconds" not in {each.name for each in watched.watch.families()}
