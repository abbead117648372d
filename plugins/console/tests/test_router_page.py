"""The page of a router: its servers, the models on them, and what an operator does with both.

CONSOLE_PICTURES and CONSOLE_SETTLE_S are those of test_pictures.py.
"""

import asyncio
import json
import os
import subprocess
import sys
import time
import urllib.request
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import pytest

START_S = 180  # of a server, on a busy machine
SETTLE_S = float(os.environ.get("CONSOLE_SETTLE_S", "2"))  # of load, before the first picture


def write(models):
    models.identity("embeddings", [16], delay_ms=4)
    models.identity("ranking", [4], versions=(1, 2), more="version_policy { all {} }\n")
    models.identity("archive_2024", [4])


@pytest.fixture(scope="module")
def fleet(serve_all, ports, tmp_path_factory):
    """Two servers and a router before them; `servers` are their names there, `url` is that of the page."""
    pytest.importorskip("core_router", reason="core-router is not installed")
    flags = ["--model-control-mode=explicit", "--load-model=embeddings", "--load-model=ranking"]
    servers = [serve_all(write, *flags).ready("embeddings", "ranking") for _ in range(2)]
    names = [f"127.0.0.1:{each.port}" for each in servers]
    addresses = [f"127.0.0.1:{each.port}:8001:{each.metrics_port}" for each in servers]
    http, admin = ports(2)
    log = tmp_path_factory.mktemp("router") / "log"
    command = [
        *(sys.executable, "-m", "core", "router", "--no-grpc", f"--servers={','.join(addresses)}"),
        *("--http-address=127.0.0.1", f"--http-port={http}", f"--admin-port={admin}"),
        *("--check-secs=0.2", "--hedge-quantile=0.95"),
    ]
    with log.open("w") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output)
    end = time.monotonic() + START_S
    while "console at" not in log.read_text():
        assert process.poll() is None and time.monotonic() < end, log.read_text()
        time.sleep(0.05)
    yield SimpleNamespace(
        servers=servers, names=names, port=http, url=f"http://127.0.0.1:{admin}/", log=log
    )
    process.terminate()
    process.wait(START_S)


@pytest.fixture
async def busy(fleet):
    """Requests through the router, until the test ends."""

    async def ask(model, size):
        tensor = {"name": "INPUT0", "datatype": "FP32", "shape": [1, size], "data": [0.5] * size}
        body = json.dumps({"inputs": [tensor]}).encode()
        url = f"http://127.0.0.1:{fleet.port}/v2/models/{model}/infer"
        while True:
            await asyncio.to_thread(lambda: urllib.request.urlopen(url, body, 30).read())
            await asyncio.sleep(0.05)

    work = [("embeddings", 16), ("embeddings", 16), ("ranking", 4)]
    tasks = [asyncio.create_task(ask(*each)) for each in work]
    yield
    for task in tasks:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


def row_of(page, name):
    return page.get_by_role("row").filter(has_text=name)


async def test_an_operator_drains_a_server_and_loads_a_model_on_all(fleet, browse):
    async with browse() as browser:
        page = browser.page
        await page.goto(fleet.url)
        first = row_of(page, fleet.names[0])
        await first.get_by_text("up", exact=True).wait_for()
        await page.get_by_role("button", name=f"Drain {fleet.names[0]}").click()
        await first.get_by_text("drained", exact=True).wait_for()
        await page.locator(".t-models").get_by_text("1 / 2").wait_for()

        await page.get_by_role("link", name="Models", exact=True).click()
        await row_of(page, "ranking").get_by_text("1 / 2").wait_for()
        await row_of(page, "archive_2024").get_by_role("link").click()
        await page.get_by_role("button", name="Load").click()
        await browser.text("on 1 of 2 servers").wait_for()

        await page.get_by_role("link", name="Servers", exact=True).click()
        await page.get_by_role("button", name=f"Resume {fleet.names[0]}").click()
        await first.get_by_text("up", exact=True).wait_for()
        await page.goto(f"{fleet.url}console#/model/archive_2024")
        await browser.text("on 2 of 2 servers").wait_for()
        tabs = await page.get_by_role("tab").all_inner_texts()
        await page.get_by_role("tab", name="Try it").click()
        await page.get_by_role("button", name="Run", exact=True).click()
        await browser.text("Answered in").wait_for()
        command = await page.locator("pre.code").last.inner_text()
        await page.get_by_role("button", name="Unload").click()
        await browser.text("This model is not loaded").wait_for()
        pages = await page.get_by_role("navigation").get_by_role("link").all_inner_texts()

    assert tabs == ["Now", "Try it"]
    assert [each.split()[0] for each in pages] == ["Servers", "Models", "Log"]
    assert f"http://127.0.0.1:{fleet.port}/v2/models/archive_2024/infer" in command
    assert browser.problems == []
    assert browser.hosts == {fleet.url.split("/")[2]}
    assert [each.ask("v2/models/archive_2024/ready")[0] for each in fleet.servers] == [400, 400]


async def test_every_page_of_a_router_is_accessible(fleet, busy, browse, tmp_path):
    axe_module = pytest.importorskip(
        "axe_playwright_python.async_playwright", reason="axe-playwright-python is not installed"
    )
    axe, found = axe_module.Axe(), {}
    folder = Path(os.environ.get("CONSOLE_PICTURES", tmp_path / "pictures"))
    folder.mkdir(parents=True, exist_ok=True)

    async with browse(color_scheme="light") as browser:
        page = browser.page
        await page.goto(f"{fleet.url}console")
        await browser.text(fleet.names[0]).wait_for()
        await asyncio.sleep(SETTLE_S)

        async def check(name):
            for theme in ("light", "dark"):
                await page.emulate_media(color_scheme=theme)
                suffix = "" if theme == "light" else "-dark"
                await page.screenshot(path=folder / f"console-{name}{suffix}.png", full_page=True)
                result = await axe.run(page)
                for each in result.response["violations"]:
                    targets = [node["target"] for node in each["nodes"]][:3]
                    found.setdefault(f"{name} {theme}", []).append((each["id"], targets))

        for name, address, text in (
            ("servers", "#/servers", fleet.names[1]),
            ("server", f"#/server/{fleet.names[0]}", "Requests in flight"),
            ("routed-models", "#/models", "ranking"),
            ("routed-model", "#/model/embeddings", "Requests in flight"),
        ):
            await page.goto(f"{fleet.url}console{address}")
            await browser.text(text).wait_for()
            await asyncio.sleep(1.2)
            await check(name)
        await page.set_viewport_size({"width": 400, "height": 860})
        await page.goto(f"{fleet.url}console#/servers")
        await browser.text(fleet.names[1]).wait_for()
        await check("servers-narrow")
        await page.get_by_label("Language").select_option("zh")
        await page.set_viewport_size({"width": 1360, "height": 900})
        await browser.text("平均延迟").wait_for()
        await check("servers-chinese")

    assert found == {}
    assert browser.problems == []


async def test_charts_of_all_pages_show_the_chosen_time(fleet, browse):
    async with browse() as browser:
        page = browser.page
        await page.goto(f"{fleet.url}console#/server/{fleet.names[0]}")
        await page.get_by_role("button", name="1 min", pressed=True).wait_for()
        await page.get_by_role("button", name="15 min", pressed=False).click()
        await page.get_by_role("button", name="15 min", pressed=True).wait_for()
        await page.evaluate("location.hash = '#/model/embeddings'")
        await browser.text("Servers").wait_for()
        await page.get_by_role("heading", name="embeddings").wait_for()
        await page.get_by_role("button", name="15 min", pressed=True).wait_for()

    assert browser.problems == []


async def test_a_server_that_dies_is_down_and_in_the_log(fleet, browse):
    async with browse() as browser:
        page = browser.page
        await page.goto(fleet.url)
        row = row_of(page, fleet.names[1])
        await row.get_by_text("up", exact=True).wait_for()
        fleet.servers[1].kill()
        await row.get_by_text("down", exact=True).wait_for()
        await page.locator(".t-models").get_by_text("1 down").wait_for()
        await page.get_by_role("link", name="Log").click()
        await browser.text(f"server {fleet.names[1]} is down").wait_for()
        fleet.servers[1].start()
        await page.get_by_role("link", name="Servers", exact=True).click()
        await row.get_by_text("up", exact=True).wait_for()

    assert browser.problems == []
