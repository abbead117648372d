"""What a person does with the page, from a model that is not loaded to one that is unloaded again."""

import re
import sys
from importlib.util import find_spec

import pytest

EXPLICIT = ("--model-control-mode=explicit", "--metrics-config=summary_latencies=true")


async def test_a_model_is_loaded_tried_with_an_image_seen_traced_and_unloaded(
    models, serve, browse, picture
):
    models.identity("picture", [3, 32, 32], delay_ms=60)
    served = serve(*EXPLICIT)

    async with browse() as browser:
        page = browser.page
        await page.goto(served.url)
        row = page.get_by_role("row").filter(has_text="picture")
        await row.get_by_text("not loaded").first.wait_for()
        await row.get_by_role("link").click()
        await page.get_by_role("button", name="Load").click()
        await browser.text("Loaded in").wait_for()

        await page.get_by_role("tab", name="Traces").click()
        await page.get_by_role("button", name="Trace requests").click()
        await browser.text("tracing is on").wait_for()

        await page.get_by_role("tab", name="Try it").click()
        await page.get_by_role("button", name="Image").click()
        await page.locator("input[type=file]").set_input_files(picture)
        await page.locator("canvas.pixels").wait_for()
        await page.get_by_role("button", name="Run", exact=True).click()
        await browser.text("Answered in").wait_for()
        await page.get_by_role("img", name="OUTPUT0").or_(page.locator("canvas.large")).wait_for()
        await page.locator(".output").get_by_role("button", name="JSON").click()
        first = (await page.locator(".output pre").inner_text())[:80]
        commands = await page.get_by_role("button", name="curl").count()

        await page.get_by_role("tab", name="Now").click()
        await browser.text("1 request").wait_for()
        chart = page.get_by_role("img", name="Requests per second. answered").first
        await chart.locator("path.line.rate").wait_for(state="attached")
        await browser.text("The model computes").wait_for()
        await page.get_by_role("button", name="5 min", exact=True).click()
        await page.get_by_role("button", name="5 min", pressed=True).wait_for()
        await chart.get_by_text("5 min").wait_for()

        await page.get_by_role("tab", name="Traces").click()
        lane = page.get_by_role("img", name="picture: received").or_(page.locator(".water-track"))
        await lane.first.wait_for()
        described = await lane.first.get_attribute("aria-label")
        instance = await page.locator(".water-name small").first.inner_text()

        await page.get_by_role("button", name="Unload").click()
        await browser.text("Unloaded in").wait_for()
        await browser.text("This model is not loaded").wait_for()

    assert ",2.2489" in first  # the red of white, as ImageNet normalises it
    assert commands == 1
    assert "compute 6" in described
    assert instance == "instance picture_0"
    assert browser.problems == []
    assert browser.hosts == {f"127.0.0.1:{served.port}"}
    assert served.json("v2/repository/index", {})[0].get("state") != "READY"


async def test_an_error_of_a_load_is_on_the_page_of_its_model(models, serve, browse):
    models.identity("broken", [4], tensors=("INPUT0", "OTHER"))
    served = serve(*EXPLICIT)

    async with browse() as browser:
        await browser.page.goto(f"{served.url}console#/model/broken")
        await browser.page.get_by_role("button", name="Load").click()
        alert = browser.page.get_by_role("alert")
        await alert.get_by_text("The load failed").wait_for()
        text = await alert.inner_text()
        await browser.page.goto(f"{served.url}console#/models")
        row = browser.page.get_by_role("row").filter(has_text="broken")
        await row.get_by_text("failed").wait_for()
        in_list = await row.inner_text()
        await browser.page.goto(f"{served.url}console#/log")
        await browser.text("failed to load 'broken'").wait_for()

    assert "OTHER" in text
    assert "OTHER" in in_list


async def test_a_server_that_dies_and_comes_back_is_followed(models, serve, browse):
    models.identity("steady", [4])
    served = serve()

    async with browse() as browser:
        page = browser.page
        await page.goto(served.url)
        await browser.text("live").wait_for()
        served.kill()
        await browser.text("no connection, trying again").wait_for()
        served.start()
        await browser.text("live").wait_for()
        served.ready("steady").infer("steady", 1, 4)
        row = page.get_by_role("row").filter(has_text="steady")
        await row.get_by_text("mean").wait_for()

    pages = [each for each in browser.problems if "ERR_" not in each]
    assert pages == []


async def test_the_graph_of_an_ensemble_has_the_times_of_its_steps(models, serve, browse):
    models.identity("resample", [16])
    models.identity("encode", [16], delay_ms=20)
    models.ensemble("speech", "resample", "encode")
    if looped := find_spec("core_ensembles") is not None:
        models.ensemble(
            *("looped", "resample", "encode"),
            step1_if="max(abs(after_resample)) > 1",
            step1_else="samples -> features",
            loop0_steps="0",
            loop0_max_turns="3",
            loop0_carry="after_resample -> samples",
        )
    served = serve("--trace-config=level=TIMESTAMPS", "--trace-config=rate=1")
    served.ready("speech")
    tensor = {"name": "samples", "datatype": "FP32", "shape": [1, 16], "data": [0.5] * 16}
    served.json("v2/models/speech/infer", {"inputs": [tensor]})

    async with browse() as browser:
        page = browser.page
        await page.goto(f"{served.url}console#/model/speech")
        graph = page.locator("svg.ensemble")
        await graph.get_by_text("encode", exact=True).wait_for()
        text = await graph.text_content()
        slow = await graph.locator("a.step.slow").count()
        await page.get_by_role("tab", name="Traces").click()
        await page.locator(".water li").nth(2).wait_for()
        rows = await page.locator(".water li").all_inner_texts()
        if looped:
            await page.goto(f"{served.url}console#/model/looped")
            await graph.locator(".loop text").get_by_text("at most 3 turns").wait_for()
            await graph.locator(".step-condition").wait_for()

    assert "after_resample" in text and "features" in text
    first, second = (
        float(number) / (1000 if unit == "µ" else 1)
        for number, unit in re.findall(r"after ([\d.]+) ([mµ])s", text)
    )
    assert second >= first + 20
    assert slow == 2
    assert [each.split("\n")[0] for each in rows] == ["speech", "resample", "encode"]
    assert browser.problems == []


async def test_tokens_arrive_one_by_one_and_a_chat_is_offered(models, serve, browse):
    models.write("letters", 'backend: "letters"\n')
    served = serve()

    async with browse() as browser:
        page = browser.page
        await page.goto(f"{served.url}console#/model/letters/try")
        form = page.get_by_label("text_input")
        tensors = page.get_by_role("button", name="Tensors")
        await form.or_(tensors).first.wait_for()
        has_chat = await tensors.count()
        if has_chat:  # frontend-openai is installed
            await page.get_by_label("Message").fill("ab")
            await page.get_by_label("Tokens at most").fill("5")
            await page.keyboard.press("Tab")
            await page.get_by_role("button", name="Send").click()
            await browser.text("first token").wait_for()
            await tensors.click()
        await page.locator("textarea[id='input-text_input']").fill("abc")
        await page.get_by_role("button", name="Run", exact=True).click()
        await browser.text("responses, the first after").wait_for()
        await page.locator(".texts p").filter(has_text="def").wait_for()

    assert browser.problems == []


async def test_settings_change_and_an_operation_runs(models, serve, browse):
    models.identity("steady", [4])
    served = serve("--model-control-mode=poll", "--repository-poll-secs=1000")

    async with browse() as browser:
        page = browser.page
        await page.goto(f"{served.url}console#/settings")
        await page.get_by_label("log_verbose_level").fill("1")
        await page.get_by_role("button", name="Apply").first.click()
        await browser.text("Changed").wait_for()
        operation = page.locator("form.operation").filter(has_text="repository.poll")
        await operation.get_by_role("button", name="Run").click()
        await operation.get_by_text("Done").wait_for()

    assert served.json("v2/logging")["log_verbose_level"] == 1
    assert browser.problems == []


async def test_the_keyboard_alone_finds_and_opens_a_model(models, serve, browse):
    for name in ("apple", "pear", "plum"):
        models.identity(name, [4])
    served = serve()

    async with browse() as browser:
        page = browser.page
        await page.goto(served.url)
        await browser.text("plum").wait_for()
        await page.keyboard.press("/")
        await page.keyboard.type("p")
        await page.keyboard.press("ArrowDown")
        await page.keyboard.press("ArrowDown")
        await page.keyboard.press("Enter")
        await page.get_by_role("heading", name="pear").wait_for()

    assert browser.problems == []


async def test_a_version_at_rest_has_not_failed(models, serve, browse):
    served = serve()
    script = """async ([file, reasons]) => {
      const { summary } = await import(file);
      const history = { now: () => 0, last: () => [] };
      const version = (reason) => ({ row: { version: 1, state: "UNAVAILABLE", reason }, history });
      const of = (reason) => summary({ reason: "", versions: new Map([[1, version(reason)]]) });
      return reasons.map((reason) => [of(reason).state, of(reason).reason]);
    }"""
    reasons = ["unloaded", "unloaded: until a request", "unloadedness", "no memory"]

    async with browse() as browser:
        await browser.page.goto(f"{served.url}console")
        found = await browser.page.evaluate(script, [f"{served.url}console/store.js", reasons])

    assert found == [
        ["UNLOADED", ""],
        ["UNLOADED", "unloaded: until a request"],
        ["UNAVAILABLE", "unloadedness"],
        ["UNAVAILABLE", "no memory"],
    ]


async def test_the_overview_shows_the_share_of_each_version(models, serve, browse):
    models.identity("shared", [4], more="version_policy { all { } }\n", versions=(1, 2))
    served = serve().ready("shared")

    async with browse() as browser:
        await browser.page.goto(f"{served.url}console")
        kind = browser.page.locator(".row-kind")
        await kind.get_by_text("v1 · v2", exact=False).wait_for()
        tensor = {"name": "INPUT0", "datatype": "FP32", "shape": [1, 4], "data": [0, 1, 2, 3]}
        for version in (1, 1, 1, 2):
            served.json(f"v2/models/shared/versions/{version}/infer", {"inputs": [tensor]})
        await kind.get_by_text("v1 75 % · v2 25 %").wait_for()

    assert browser.problems == []


async def test_the_memory_of_models_is_shown_against_the_budget(models, serve, browse):
    if find_spec("core_memory_budget") is None:
        pytest.skip("core-memory-budget is not installed")
    models.identity("kept", [4])
    served = serve("--memory-budget=2G").ready("kept")
    [account] = served.json("control/model_memory.account")["result"]

    async with browse() as browser:
        await browser.page.goto(f"{served.url}console")
        await browser.text("of 2 GiB").wait_for()
        tile = await browser.page.locator(".t-memory small").inner_text()

    assert account["budget"] == {"host": 2 << 30}
    assert re.fullmatch(r"models \d.*B of 2 GiB", tile)
    assert browser.problems == []


@pytest.mark.skipif(sys.platform != "linux", reason="workers need Linux")
async def test_each_worker_has_its_processor_time_and_memory(models, serve, browse):
    pytest.importorskip("core_workers", reason="the plugin core-workers is not installed")
    models.identity("steady", [4])
    served = serve("--workers=2").ready("steady")

    async with browse() as browser:
        await browser.page.goto(f"{served.url}console")
        workers = browser.page.get_by_role("list", name="Workers").get_by_role("listitem")
        await workers.filter(has_text=" %").nth(1).wait_for()
        texts = await workers.all_inner_texts()

    assert [each.split()[:2] for each in texts] == [["worker", "1"], ["worker", "2"]]
    assert all(each.endswith("MiB") for each in texts)
    assert browser.problems == []


async def test_the_page_says_which_worker_does_not_answer(models, serve, browse):
    served = serve()
    script = """async (file) => {
      const { store, take } = await import(file);
      const of = (silent) => {
        take("whole", { at_ms: 1, rows: [], processes: [], noticed: 0, silent });
        return store.trouble;
      };
      return [of([]), of([2, 3])];
    }"""

    async with browse() as browser:
        await browser.page.goto(f"{served.url}console")
        found = await browser.page.evaluate(script, f"{served.url}console/store.js")

    assert found == ["", "worker 2, 3 does not answer"]
