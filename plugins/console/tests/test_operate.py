"""What an operator does with the page: captures, jobs, traffic, live settings, measurements."""

import json

import pytest

BATCHES = "dynamic_batching { max_queue_delay_microseconds: 100 }\nversion_policy { all {} }\n"


def write(models):
    models.identity("steady", [4], versions=(1, 2), more=BATCHES)


@pytest.fixture(scope="module")
def served(serve_all):
    for name in ("core_capture", "core_jobs", "core_settings", "core_traffic", "core_bench"):
        pytest.importorskip(name, reason=f"{name} is not installed")
    flags = ("--capture-live={}/captures", "--jobs-folder={}/jobs")
    return serve_all(write, *flags).ready("steady")


async def start(browser, name):
    await browser.page.get_by_label("Name").fill(name)
    await browser.page.get_by_role("button", name="Start").click()
    await browser.text("a capture runs").wait_for()


async def stop(browser):
    await browser.page.get_by_role("button", name="Stop").click()
    await browser.page.get_by_role("button", name="Start").wait_for()


async def test_requests_are_captured_looked_at_and_replayed(served, browse):
    async with browse() as browser:
        page = browser.page
        await page.goto(f"{served.url}console#/captures")
        await start(browser, "noon")
        for _ in range(3):
            served.infer("steady", 1, 4)
        await browser.text("3 written").wait_for()
        await page.locator(".trace-rows li").nth(2).wait_for()
        values = await page.locator(".record-values").first.inner_text()
        await stop(browser)

        await page.get_by_role("button", name="Replay…").click()
        await page.get_by_role("button", name="Run the replay").click()
        await browser.text("All compared answers are as before").wait_for()
        report = await page.locator(".replay-report").inner_text()

    assert values == "0, 0.25, 0.5, 0.75"
    assert "answers are equal\n3" in report
    assert browser.problems == []
    assert "noon" in {each["name"] for each in served.json("v2/captures")["captures"]}


@pytest.mark.parametrize("goes_on", [True, False])
async def test_a_capture_that_begins_beside_a_replay_is_shown_after_it_if_it_still_runs(
    served, browse, goes_on
):
    before, after = f"before-{goes_on}", f"after-{goes_on}"
    async with browse() as browser:
        page = browser.page
        await page.goto(f"{served.url}console#/captures")
        chosen = page.locator("#capture-of option:checked")
        await start(browser, before)
        served.infer("steady", 1, 4)
        await page.locator(f"#capture-of option:checked[value={before}]").wait_for(state="attached")
        await stop(browser)
        replay = page.get_by_role("button", name="Replay…")
        await replay.click()
        await start(browser, after)
        served.infer("steady", 1, 4)
        await page.locator(f"#capture-of option[value={after}]").wait_for(state="attached")
        if not goes_on:
            await stop(browser)
        beside = await chosen.get_attribute("value")

        await replay.click()
        await page.locator(".replay").wait_for(state="detached")
        for _ in range(2):  # the first may have been asked for before
            async with page.expect_response("**/v2/captures"):
                pass
        if goes_on:
            await page.locator(f"#capture-of option:checked[value={after}]").wait_for(
                state="attached"
            )
            await stop(browser)
        shown = await chosen.get_attribute("value")

    assert (beside, shown) == (before, after if goes_on else before)
    assert browser.problems == []


async def test_a_slow_list_of_captures_is_asked_for_once(served, browse):
    asked = []

    async def keep(route):
        asked.append(route)  # and never answered

    async with browse() as browser:
        page = browser.page
        await page.route("**/v2/captures", keep)
        await page.clock.install()
        await page.goto(f"{served.url}console#/captures")
        await page.get_by_role("heading", name="Captures").wait_for()
        for _ in range(4):
            await page.clock.run_for(2500)
        await page.unroute_all(behavior="ignoreErrors")

    assert len(asked) == 1


async def test_a_batch_is_submitted_and_its_results_are_read(served, browse):
    async with browse() as browser:
        page = browser.page
        await page.goto(f"{served.url}console#/jobs")
        await page.get_by_label("Model", exact=True).fill("steady")
        await page.get_by_role("button", name="Example").click()
        request = page.get_by_label("Requests")
        await page.wait_for_function("document.getElementById('job-text').value")
        line = await request.input_value()
        wrong = line.replace("INPUT0", "OTHER")
        await request.fill(f"{line}\n{wrong}\n")
        await page.get_by_role("button", name="Submit").click()
        await page.locator(".job-results li").nth(1).wait_for()
        results = await page.locator(".job-results summary").all_inner_texts()
        await page.locator(".job-facts").get_by_text("Ended").wait_for()
        async with page.expect_download() as downloaded:
            await page.get_by_role("button", name="Download").click()
        saved = (await (await downloaded.value).path()).read_text()
        await page.get_by_role("button", name="Delete").click()
        await browser.text("No job").wait_for()

    assert results[0] == "#0 OUTPUT0 [0,0,0,0]"
    assert results[1].startswith("#1 400 ") and "OTHER" in results[1]
    assert [json.loads(each)["status"] for each in saved.splitlines()] == [200, 400]
    assert browser.problems == []


UPLOAD = """async () => {
  const form = new FormData();
  form.append("file", new File(['{"INPUT0": [1, 2, 3, 4]}\\n{}\\n'], "night.jsonl"));
  return (await fetch("v2/models/steady/jobs/files", { method: "POST", body: form })).status;
}"""


async def test_the_results_of_uploaded_files_are_read_with_their_places(served, browse):
    async with browse() as browser:
        page = browser.page
        await page.goto(f"{served.url}console#/jobs")
        status = await page.evaluate(UPLOAD)
        await page.locator(".job-results li").nth(1).wait_for()
        results = await page.locator(".job-results summary").all_inner_texts()
        await page.get_by_role("button", name="Delete").click()
        await browser.text("No job").wait_for()

    assert status == 202
    assert results[0] == "#0 night.jsonl:1 OUTPUT0 [1,2,3,4]"
    assert results[1].startswith("#1 night.jsonl:2 400 ")
    assert browser.problems == []


async def test_a_file_of_requests_is_dropped(served, browse):
    async with browse() as browser:
        page = browser.page
        await page.goto(f"{served.url}console#/jobs")
        area = page.locator(".job-form .drop")
        file = "new File(['{}\\n{}'], 'night.jsonl')"
        dragged = await page.evaluate_handle(
            f"() => {{ const found = new DataTransfer(); found.items.add({file}); return found; }}"
        )
        await area.dispatch_event("drop", {"dataTransfer": dragged})
        await area.get_by_text("night.jsonl").wait_for()
        closed = await page.get_by_label("Requests").is_disabled()
        await page.get_by_role("button", name="No file").click()
        opened = await page.get_by_label("Requests").is_enabled()

    assert closed and opened
    assert browser.problems == []


async def test_settings_change_live_and_go_back(served, browse):
    async with browse() as browser:
        page = browser.page
        await page.goto(f"{served.url}console#/model/steady/change")
        settings = page.get_by_role("region", name="Live settings")
        delay = settings.get_by_label("max_queue_delay_microseconds")
        await delay.fill("700")
        preview = await settings.locator(".difference").inner_text()
        await settings.get_by_role("button", name="Apply").click()
        await settings.get_by_text("Changed").wait_for()
        in_force = served.json("v2/models/steady/settings")["settings"]
        said = await settings.get_by_text("configuration: 100").count()
        await delay.fill("x")
        await settings.get_by_text("must be JSON, such as 700").wait_for()
        await settings.get_by_role("button", name="Back to the configuration").click()
        past = page.get_by_role("region", name="Changes so far")
        await past.get_by_role("button", name="Back to change 1").wait_for()
        await past.get_by_role("button", name="Back to change 1").click()
        await past.get_by_text("rollback to 1").wait_for()
        after = await delay.input_value()

    assert preview == "dynamic_batching.max_queue_delay_microseconds: 100 → 700"
    assert in_force == {"dynamic_batching": {"max_queue_delay_microseconds": 700}}
    assert (said, after) == (1, "700")
    assert browser.problems == []


async def test_weights_share_the_traffic_of_versions(served, browse):
    async with browse() as browser:
        page = browser.page
        await page.goto(f"{served.url}console#/model/steady/change")
        traffic = page.get_by_role("region", name="Traffic by version")
        await traffic.get_by_label("Weight of version 1").fill("25")
        await traffic.get_by_label("Weight of version 2").fill("75")
        preview = await traffic.locator(".difference li").all_inner_texts()
        await traffic.get_by_role("button", name="Apply").click()
        await traffic.get_by_text("Changed").wait_for()
        shares = await traffic.locator(".share b").all_inner_texts()

    assert preview == ["version 1: 0 % → 25 %", "version 2: 100 % → 75 %"]
    assert shares == ["25 %", "75 %"]
    assert served.json("v2/models/steady/traffic")["traffic"]["weights"] == {"1": 25, "2": 75}
    assert browser.problems == []


async def test_a_model_is_measured_and_the_measurement_can_be_stopped(served, browse):
    async with browse() as browser:
        page = browser.page
        await page.goto(f"{served.url}console#/model/steady/bench")
        await page.get_by_label("Loads, in turn").fill("1, 2")
        await page.get_by_label("Rounds", exact=True).fill("1")
        await page.get_by_label("Shapes of open inputs").fill("INPUT0:4")
        await page.get_by_label("Seconds of a round").fill("0.2")
        await page.get_by_role("button", name="Start").click()
        await page.get_by_role("button", name="Stop").wait_for(state="hidden")
        rows = await page.locator(".panel tbody th").all_inner_texts()
        await page.get_by_label("Shapes of open inputs").fill("INPUT0:4; OTHER:x")
        await page.get_by_role("button", name="Start").click()
        await browser.text("shapes has [None] for 'OTHER'").wait_for()
        browser.problems.clear()  # the status 400
        await page.get_by_label("Shapes of open inputs").fill("")
        described = await page.locator(".curve").get_attribute("aria-label")
        await page.get_by_label("Rounds", exact=True).fill("20")
        await page.get_by_role("button", name="Start").click()
        await page.locator(".bench-live").get_by_text("round").wait_for()
        await page.get_by_role("button", name="Stop").click()
        await browser.text("The measurement was stopped").wait_for()

    assert rows == ["1 at once", "2 at once"]
    assert described.startswith("Latency against rate. p50: 1 at once ")
    assert browser.problems == []
