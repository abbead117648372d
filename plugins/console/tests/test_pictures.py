"""Every page in both themes: nothing that axe objects to, and a picture of it.

CONSOLE_PICTURES names the folder for the pictures, such as docs/pictures: `make console-pictures`.
"""

import asyncio
import json
import os
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

import pytest

SETTLE_S = float(os.environ.get("CONSOLE_SETTLE_S", "3"))  # of load, before the first picture

LABELS = "cat\ndog\nbird\nfish\nhorse\nfrog\n"
CLASSES = (
    'backend: "identity"\nmax_batch_size: 8\n'
    'input { name: "INPUT0" data_type: TYPE_FP32 dims: [6] }\n'
    'output { name: "OUTPUT0" data_type: TYPE_FP32 dims: [6] label_filename: "labels.txt" }\n'
)
QUEUE = (
    "dynamic_batching { priority_levels: 2 default_priority_level: 2 "
    "max_queue_delay_microseconds: 2000 }\n"
)
CHAT = 'backend: "letters"\nparameters { key: "delay_ms" value { string_value: "20" } }\n'


def write(models):
    models.identity("resample", [16])
    models.identity("encode", [16], delay_ms=12, more="instance_group { count: 2 }\n")
    models.identity("label_text", [16], delay_ms=2)
    models.ensemble("speech_to_text", "resample", "encode", "label_text")
    models.identity("embeddings", [384], delay_ms=4, more=QUEUE)
    models.identity(
        "super_resolution", [3, 96, 96], delay_ms=9, more="instance_group { count: 3 }\n"
    )
    models.write("animal_classes", CLASSES)
    (models.path / "animal_classes" / "labels.txt").write_text(LABELS)
    models.write("chat_small", CHAT)
    models.identity("broken_export", [4], tensors=("INPUT0", "LOGITS"))
    models.identity("archive_2024", [4], versions=(1, 2))
    models.identity("ranking", [4], versions=(1, 2), more=f"version_policy {{ all {{}} }}\n{QUEUE}")


# Plugins that the page has a page for: without them, it shows none.
OPTIONAL = [
    flag
    for plugin, flag in (
        ("core_capture", "--capture-live={}/captures"),
        ("core_jobs", "--jobs-folder={}/jobs"),
    )
    if find_spec(plugin) is not None
]
LOADED = (
    "ranking",
    "speech_to_text",
    "embeddings",
    "super_resolution",
    "animal_classes",
    "chat_small",
)


@pytest.fixture(scope="module")
def served(serve_all):
    flags = [f"--load-model={each}" for each in (*LOADED, "broken_export")]
    return serve_all(
        write,
        "--model-control-mode=explicit",
        "--metrics-config=summary_latencies=true",
        "--trace-config=level=TIMESTAMPS",
        "--trace-config=rate=5",
        "--id=models-eu-1",
        *OPTIONAL,
        *flags,
    ).ready(*LOADED)


@pytest.fixture
async def busy(served):
    """Requests to several models, until the test ends."""

    async def speech(pause_s):
        tensor = {"name": "samples", "datatype": "FP32", "shape": [1, 16], "data": [0.5] * 16}
        while True:
            await asyncio.to_thread(
                served.json, "v2/models/speech_to_text/infer", {"inputs": [tensor]}
            )
            await asyncio.sleep(pause_s)

    tasks = [asyncio.create_task(speech(0.05)) for _ in range(3)]
    for model, shape, count in (
        ("embeddings", (2, 384), 4),
        ("super_resolution", (1, 3, 96, 96), 1),
        ("animal_classes", (1, 6), 1),
    ):
        for _ in range(count):
            tasks.append(asyncio.create_task(served.load(model, *shape, pause_s=0.04)))
    yield
    for task in tasks:
        task.cancel()
    for task in tasks:
        with suppress(asyncio.CancelledError):
            await task


@pytest.fixture
def folder(tmp_path):
    found = Path(os.environ.get("CONSOLE_PICTURES", tmp_path / "pictures"))
    found.mkdir(parents=True, exist_ok=True)
    return found


async def tried(browser, picture):
    page = browser.page
    await page.get_by_role("button", name="Image").click()
    await page.locator("input[type=file]").set_input_files(picture)
    await page.locator("canvas.pixels").first.wait_for()
    await page.get_by_role("button", name="Run", exact=True).click()
    await browser.text("Answered in").wait_for()


async def classified(browser):
    await browser.page.locator("textarea.mono").first.fill("0.02 0.71 0.04 0.01 0.18 0.04")
    await browser.page.get_by_role("button", name="Run", exact=True).click()
    await browser.text("Answered in").wait_for()


async def chatted(browser):
    page = browser.page
    if await page.get_by_label("Message").count() == 0:  # without frontend-openai
        return
    await page.get_by_label("Message").fill("Which letters come next? abc")
    await page.get_by_label("Tokens at most").fill("40")
    await page.get_by_role("button", name="Send").click()
    await browser.text("tokens/s").wait_for()
    await asyncio.sleep(1)


async def opened(browser):
    await browser.page.locator(".trace-rows button").filter(has_text="speech_to_text").first.click()
    await browser.page.locator(".water li").nth(3).wait_for()


async def captured(browser):
    page = browser.page
    start, stop = (page.get_by_role("button", name=each) for each in ("Start", "Stop"))
    await start.or_(stop).wait_for()
    again = await stop.count() > 0  # in the other theme: a capture of few requests
    if again:
        await stop.click()
    name = "evening" if again else "noon"
    await page.get_by_label("Name").fill(name)
    await start.click()
    await page.get_by_text("a capture runs").wait_for()
    await page.locator(f"#capture-of option:checked[value={name}]").wait_for(state="attached")
    await page.locator(".record-values").first.wait_for()
    await asyncio.sleep(1)
    await page.get_by_role("button", name="Replay…").click()
    await page.get_by_role("button", name="Run the replay").click()
    await page.locator(".replay-report").wait_for(timeout=120_000)  # thousands of requests


async def submitted(browser):
    page = browser.page
    await page.get_by_label("Model", exact=True).fill("animal_classes")
    line = {"name": "INPUT0", "datatype": "FP32", "shape": [1, 6], "data": [[0.1] * 6]}
    lines = [json.dumps({"inputs": [line]}) for _ in range(40)]
    await page.get_by_label("Requests").fill("\n".join(lines))
    await page.get_by_role("button", name="Submit").click()
    await page.locator(".job-facts").get_by_text("Ended").wait_for()
    await page.locator(".job-results li").nth(9).wait_for()


async def changed(browser):
    page = browser.page
    first = page.get_by_label("Weight of version 1")
    again = await first.input_value() == "90"  # in the other theme
    await first.fill("80" if again else "90")
    await page.get_by_label("Weight of version 2").fill("20" if again else "10")
    await page.get_by_role("button", name="Apply").first.click()
    delay = page.get_by_label("max_queue_delay_microseconds").first
    settings = page.get_by_role("region", name="Live settings")
    await delay.fill("700" if again else "500")
    await settings.get_by_role("button", name="Apply").click()
    await page.get_by_text("in force").wait_for()
    await delay.fill("900")


async def measured(browser):
    page = browser.page
    await page.get_by_label("Seconds of a round").fill("0.3")
    await page.get_by_label("Rounds", exact=True).fill("2")
    await page.get_by_role("button", name="Start").click()
    await page.get_by_role("button", name="Stop").wait_for(state="hidden")


# name of the picture, address, what to wait for, what to do
PAGES = (
    ("console-overview", "#/models", "speech_to_text", None),
    ("console-model", "#/model/embeddings", "Where the time goes", None),
    ("console-ensemble", "#/model/speech_to_text", "The steps", None),
    ("console-try-classes", "#/model/animal_classes/try", "Inputs", classified),
    ("console-chat", "#/model/chat_small/try", "Send", chatted),
    ("console-configuration", "#/model/embeddings/configuration", "What a request passes", None),
    ("console-traces", "#/traces", "Slowest", opened),
    ("console-failed", "#/model/broken_export", "This model failed to load", None),
    ("console-unloaded", "#/model/archive_2024", "This model is not loaded", None),
    ("console-change", "#/model/ranking/change", "Live settings", changed),
    ("console-bench", "#/model/animal_classes/bench", "Measure this model", measured),
    ("console-tune", "#/model/animal_classes/tune", "Find the best settings", None),
    ("console-captures", "#/captures", "equests", captured),
    ("console-jobs", "#/jobs", "Submit a job", submitted),
    ("console-log", "#/log", "broken_export", None),
    ("console-settings", "#/settings", "Other control operations", None),
)


# Name of a picture → a route without which the page has nothing to show there.
NEEDS = {
    "console-captures": "GET /v2/captures",
    "console-jobs": "GET /v2/jobs",
    "console-change": "GET /v2/models/{model}/settings",
    "console-bench": "POST /v2/models/{model}/bench",
    "console-tune": "POST /v2/models/{model}/tune",
}


@pytest.mark.parametrize("theme", ["light", "dark"])
async def test_every_page_is_accessible(served, busy, browse, folder, picture, theme):
    axe_module = pytest.importorskip(
        "axe_playwright_python.async_playwright", reason="axe-playwright-python is not installed"
    )
    axe, found = axe_module.Axe(), {}

    async with browse(color_scheme=theme) as browser:
        page = browser.page
        await page.goto(f"{served.url}console")
        await browser.text("speech_to_text").wait_for()
        await asyncio.sleep(SETTLE_S)

        async def check(name):
            await page.evaluate("scrollTo(0, 0)")
            suffix = "" if theme == "light" else "-dark"
            await page.screenshot(path=folder / f"{name}{suffix}.png", full_page=True)
            result = await axe.run(page)
            for each in result.response["violations"]:
                targets = [node["target"] for node in each["nodes"]][:3]
                found.setdefault(name, []).append((each["id"], targets))

        offered = served.json("console/session")["routes"]
        for name, address, text, act in PAGES:
            if name in NEEDS and NEEDS[name] not in offered:
                continue
            await page.goto(f"{served.url}console{address}")
            await browser.text(text).wait_for()
            await asyncio.sleep(1.2)
            if act is not None:
                await act(browser)
            await check(name)
        await page.goto(f"{served.url}console#/model/super_resolution/try")
        await browser.text("Inputs").wait_for()
        await tried(browser, picture)
        await check("console-try-image")
        await page.set_viewport_size({"width": 400, "height": 860})
        await page.goto(f"{served.url}console#/models")
        await browser.text("animal_classes").wait_for()
        await check("console-narrow")
        await page.get_by_label("Language").select_option("zh")
        await page.set_viewport_size({"width": 1360, "height": 900})
        await browser.text("平均延迟").wait_for()
        await check("console-chinese")

    assert found == {}
    assert browser.problems == []
    assert browser.hosts == {f"127.0.0.1:{served.port}"}
