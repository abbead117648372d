"""Tokens and roles: the page shows what its token permits, and nothing else."""

import hashlib

import pytest

ROLES = {"ann": "infer", "ben": "read", "cat": "manage", "dan": "infer,manage"}


def write(models):
    models.identity("steady", [4])
    lines = [
        f"{name} {roles} sha256:{hashlib.sha256(f'token-{name}'.encode()).hexdigest()}\n"
        for name, roles in ROLES.items()
    ]
    (models.parent / "tokens").write_text("".join(lines))


@pytest.fixture(scope="module")
def served(serve_all):
    flags = ("--model-control-mode=explicit", "--load-model=steady", "--auth-tokens={}/tokens")
    return serve_all(write, *flags).ready("steady", token="token-dan")


def test_the_page_is_open_and_its_data_are_not(served):
    page = served.ask("console")
    script = served.ask("console/app.js")
    refused = [
        served.ask(f"console/{each}")[0]
        for each in ("session", "stream", "traces", "notices", "operations", "models/steady")
    ]

    assert page[0] == script[0] == 200
    assert "steady" not in page[2]
    assert refused == [401] * 6


@pytest.mark.parametrize(
    "path,statuses",
    [
        ("console/stream", {"ann": 403, "ben": 200, "cat": 200}),
        ("console/traces", {"ann": 403, "ben": 200, "cat": 200}),
        ("console/notices", {"ann": 403, "ben": 200, "cat": 200}),
        ("console/models/steady", {"ann": 200, "ben": 200, "cat": 200}),
    ],
)
def test_each_path_needs_the_role_of_its_category(served, path, statuses):
    def status(name):
        if path.endswith("stream") and statuses[name] == 200:
            return 200 if served.events(1, token=f"token-{name}") else 0
        return served.ask(path, token=f"token-{name}")[0]

    assert {name: status(name) for name in statuses} == statuses


def test_a_session_lists_the_added_routes_that_its_caller_may_ask(served):
    pytest.importorskip("core_capture", reason="core_capture is not installed")
    found = {name: served.json("console/session", token=f"token-{name}") for name in ROLES}
    routes = {name: [each for each in found[name]["routes"] if "capture" in each] for name in ROLES}

    assert routes["ann"] == []
    assert routes["ben"] == ["GET /control/capture.status", "POST /control/capture.status"]
    assert {"GET /v2/captures", "POST /control/capture.start"} <= set(routes["cat"])


def test_a_session_says_what_its_caller_may_do(served):
    found = {name: served.json("console/session", token=f"token-{name}") for name in ROLES}

    assert {name: each["caller"] for name, each in found.items()} == {each: each for each in ROLES}
    assert found["ann"]["may"]["change_infer"] and not found["ann"]["may"]["read_statistics"]
    assert found["ben"]["may"]["read_statistics"] and not found["ben"]["may"]["change_load"]
    assert found["cat"]["may"]["change_load"] and not found["cat"]["may"]["change_infer"]
    assert all(found["dan"]["may"].values())


async def sign_in(page, name):
    await page.get_by_label("Token").fill(f"token-{name}")
    await page.get_by_role("button", name="Sign in").click()


async def test_a_reader_sees_no_button_that_changes_something(served, browse):
    async with browse() as browser:
        page = browser.page
        await page.goto(served.url)
        await sign_in(page, "ben")
        await page.get_by_role("link", name="steady").click()
        await page.get_by_role("tab", name="Now").wait_for()
        tabs = await page.get_by_role("tab").all_inner_texts()
        changes = await page.locator(".actions button").count()
        in_tab = 0
        if "Change" in tabs:
            await page.get_by_role("tab", name="Change").click()
            await page.locator(".panel .card").first.wait_for()
            in_tab = await page.locator(".panel form button").count()
        pages = await page.get_by_role("navigation").get_by_role("link").all_inner_texts()
        await page.get_by_role("link", name="Settings").click()
        await page.get_by_label("log_info").wait_for()
        applies = await page.get_by_role("button", name="Apply").count()
        kept = await page.evaluate(
            "JSON.stringify([localStorage, sessionStorage, document.cookie])"
        )
        await page.get_by_role("button", name="Sign out ben").click()
        await page.get_by_label("Token").wait_for()

    assert [each for each in tabs if each != "Change"] == ["Now", "Configuration", "Traces"]
    assert pages == ["Models", "Traces", "Log", "Settings"]
    assert changes == applies == in_tab == 0
    assert "token-ben" not in kept


async def test_a_caller_with_infer_alone_names_a_model_and_tries_it(served, browse):
    async with browse() as browser:
        page = browser.page
        await page.goto(served.url)
        await sign_in(page, "ann")
        await page.get_by_label("Name of the model").fill("steady")
        await page.get_by_role("button", name="Open").click()
        await page.get_by_role("button", name="Run", exact=True).click()
        await browser.text("Answered in").wait_for()
        links = await page.get_by_role("navigation").get_by_role("link").all_inner_texts()

    assert links == ["Try a model"]


async def test_a_wrong_token_is_refused_with_the_text_of_the_server(served, browse):
    async with browse() as browser:
        page = browser.page
        await page.goto(served.url)
        await sign_in(page, "eve")
        await page.get_by_role("alert").get_by_text("the token is not known").wait_for()


async def test_a_token_that_is_removed_ends_the_stream(served, browse):
    async with browse() as browser:
        page = browser.page
        await page.goto(served.url)
        await sign_in(page, "ben")
        await browser.text("live").wait_for()
        tokens = served.models.parent / "tokens"
        lines = tokens.read_text().splitlines(keepends=True)
        tokens.write_text("".join(each for each in lines if not each.startswith("ben")))
        served.process.send_signal(1)  # SIGHUP: read it again
        await page.get_by_label("Token").wait_for()
