"""The page /docs: its document, its files, and a model that is asked from it in a browser."""

import asyncio
import importlib.util
import json
import time
from urllib.parse import urlsplit

import pytest
from chromium import open_page

from frontends.http import model_openapi
from frontends.http.services import docs
from frontends.shared.access.tokens import line_of

SWAGGER = pytest.mark.skipif(
    importlib.util.find_spec(docs.PACKAGE) is None,
    reason="Swagger UI (core[docs]) is not installed",
)


async def described(site, headers=()):
    reply = await site.ask("GET", "/docs/openapi.json", headers=headers)
    assert reply.status == 200, reply.body
    return reply.json


async def test_the_document_has_the_tensors_of_each_model(site):
    document = await described(site)

    assert document["openapi"] == "3.1.0"
    assert {tag["name"] for tag in document["tags"]} == {
        *("broken", "echo", "gated", "half", "rows", "stream", "words")
    }
    infer = document["paths"]["/v2/models/rows/infer"]["post"]
    schema = infer["requestBody"]["content"]["application/json"]["schema"]
    (entry,) = [schema["properties"]["inputs"]["items"]]
    assert entry["properties"]["name"] == {"const": "x"}
    assert entry["properties"]["datatype"] == {"const": "INT32"}
    assert entry["properties"]["shape"] == {
        "type": "array",
        "prefixItems": [{"type": "integer", "minimum": 1, "maximum": 4}, {"const": 2}],
        "minItems": 2,
        "maxItems": 2,
    }
    assert entry["properties"]["data"] == {"type": "array", "items": {"type": "integer"}}


async def test_a_decoupled_model_has_only_a_stream(site):
    paths = (await described(site))["paths"]

    assert "/v2/models/stream/generate_stream" in paths
    assert "/v2/models/stream/infer" not in paths
    assert "/v2/models/stream/generate" not in paths


async def test_every_example_is_answered_as_it_is(site):
    """`gated` waits and `broken` fails whatever they are asked."""
    asked = []
    for path, entry in (await described(site))["paths"].items():
        if "post" not in entry or path.split("/")[3] in ("gated", "broken", "stream"):
            continue
        content = entry["post"]["requestBody"]["content"]["application/json"]
        if "example" in content:
            reply = await site.ask("POST", path, content["example"])
            if path.endswith("_stream"):
                assert reply.status == 200, path
            else:
                assert reply.status == 200, (path, reply.body)
            asked.append(path)
    assert {path for path in asked if path.endswith("/infer")} == {
        f"/v2/models/{model}/infer" for model in ("echo", "rows", "words")
    }


async def test_a_model_without_json_has_no_example(site):
    content = (await described(site))["paths"]["/v2/models/half/infer"]["post"]["requestBody"]

    assert "example" not in content["content"]["application/json"]


async def test_a_large_input_has_no_example(site, monkeypatch):
    monkeypatch.setattr(model_openapi, "MOST_EXAMPLE", 1)
    content = (await described(site))["paths"]["/v2/models/rows/infer"]["post"]["requestBody"]

    assert "example" not in content["content"]["application/json"]


async def test_a_model_that_may_get_files_has_a_form(site):
    paths = (await described(site))["paths"]

    def body(model):
        return paths[f"/v2/models/{model}/infer"]["post"]["requestBody"]["content"]

    assert body("words")["multipart/form-data"]["schema"]["properties"] == {
        "x": {"type": "string", "format": "binary"}
    }
    assert "multipart/form-data" not in body("rows")


async def test_the_document_needs_the_role_that_lists_models(open_with, tmp_path):
    tokens = tmp_path / "tokens"
    tokens.write_text("\n".join((line_of("i", ["infer"], "i"), line_of("r", ["read"], "r"))))
    async with open_with(auth_tokens=str(tokens)) as site:
        for headers, status in (({}, 401), (bearer("i"), 403), (bearer("r"), 200)):
            for path in ("/docs/openapi.json", "/v2/models"):
                assert (await site.ask("GET", path, headers=headers)).status == status
        document = await described(site, bearer("r"))

    assert document["components"]["securitySchemes"] == {
        "token": {"type": "http", "scheme": "bearer"}
    }
    assert document["security"] == [{"token": []}]


def bearer(token):
    return {"Authorization": f"Bearer {token}"}


async def test_models_are_listed_with_state_and_tensors(site):
    listed = (await site.ask("GET", "/v2/models")).json["models"]

    assert [each["name"] for each in listed] == sorted(each["name"] for each in listed)
    (rows,) = [each for each in listed if each["name"] == "rows"]
    assert rows == {
        "name": "rows",
        "state": "READY",
        "versions": ["1"],
        "platform": "test",
        "inputs": [{"name": "x", "datatype": "INT32", "shape": [-1, 2]}],
        "outputs": [{"name": "y", "datatype": "INT32", "shape": [-1, 2]}],
    }


async def test_a_model_that_is_not_loaded_is_not_listed(open_with):
    async with open_with(model_control_mode="explicit") as site:
        assert (await site.ask("GET", "/v2/models")).json == {"models": []}
        await site.server.models.load("echo")
        listed = (await site.ask("GET", "/v2/models")).json["models"]
        assert [each["name"] for each in listed] == ["echo"]
        await site.server.models.unload("echo")
        end = time.monotonic() + 20
        while (states := (await site.ask("GET", "/v2/models")).json["models"]) and (
            states[0]["state"] == "UNLOADING"
        ):
            assert time.monotonic() < end
            await asyncio.sleep(0.01)
        assert states == []
        document = await described(site)
        assert (document["paths"], document["info"]["description"]) == ({}, "No model serves.")


async def test_without_swagger_ui_the_page_names_the_extra(site, monkeypatch):
    monkeypatch.setattr(docs, "PACKAGE", "package_that_is_not_installed")
    docs.file_of.cache_clear()
    for path in ("/docs", "/docs/swagger-ui.css"):
        reply = await site.ask("GET", path)
        assert reply.status == 501
        assert reply.json["error"].endswith("try: pip install --find-links wheels 'core[docs]'")


@pytest.mark.parametrize("name", ["page.html", "nothing.js", "VERSION", "..", "swagger-ui.js"])
async def test_other_files_are_not_served(site, name):
    assert (await site.ask("GET", f"/docs/{name}")).status == 404


@SWAGGER
async def test_the_page_permits_scripts_of_this_server_only(site):
    reply = await site.ask("GET", "/docs")

    assert reply.headers["content-type"] == "text/html; charset=utf-8"
    policy = dict(
        each.split(" ", 1) for each in reply.headers["content-security-policy"].split("; ")
    )
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == "'self'"
    assert policy["connect-src"] == "'self'"
    assert policy["frame-ancestors"] == "'none'"
    assert reply.headers["x-content-type-options"] == "nosniff"


def block(path, method="post"):
    """The JavaScript expression of the box of an operation."""
    return (
        f"[...document.querySelectorAll('.opblock-{method}')].find(each => "
        f"each.querySelector('.opblock-summary-path').textContent"
        f".replaceAll('\\u200b', '') === {json.dumps(path)})"
    )


async def open_box(page, path):
    """Open the box of an operation, and return its expression."""
    box = block(path)
    await page.until(f"!!({box})")
    await page.settled()
    await page.value(f"{box}.querySelector('.opblock-summary-control').click()")
    await page.until(f"!!({box}).querySelector('.btn.execute')")
    await page.settled()
    return box


async def execute(page, box):
    """Execute an operation, and return status and body of its response."""
    await page.value(f"{box}.querySelector('.btn.execute').click()")
    live = f"{box}.querySelector('.live-responses-table')"
    await page.until(f"!!({live})")
    status = await page.until(f"{live}.querySelector('.response .response-col_status').innerText")
    text = await page.value(f"{live}.querySelector('.highlight-code pre').innerText")
    return int(status.split()[0]), text


@pytest.fixture
def lane():
    """A browser asks what aiohttp answers in any case; its requests for inference take the fast path."""
    return "auto"


@SWAGGER
@pytest.mark.timeout(300)
async def test_a_model_is_asked_from_the_page(site, tmp_path):
    server = f"http://127.0.0.1:{site.frontend.port}"
    async with open_page(tmp_path / "profile") as page:
        await page.open(f"{server}/docs")
        status, text = await execute(page, await open_box(page, "/v2/models/rows/infer"))
        await page.value(f"{block('/v2/models/rows/infer')}.scrollIntoView()")
        picture = tmp_path / "docs.png"
        await page.screenshot(picture)

        assert status == 200, text
        assert json.loads(text)["outputs"] == [
            {"name": "y", "datatype": "INT32", "shape": [1, 2], "data": [0, 0]}
        ]
        hosts = {urlsplit(url).netloc for url in page.requested if url.startswith("http")}
        assert hosts == {urlsplit(server).netloc}
        assert page.problems == []
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert picture.stat().st_size > 10_000


def with_tokens(folder):
    tokens = folder / "tokens"
    tokens.write_text(line_of("r", ["read", "infer"], "secret"))
    return {"auth_tokens": str(tokens)}


def with_a_header(folder):
    return {
        "http_restricted_api": dict.fromkeys(("model-repository", "inference"), ("Key", "secret"))
    }


@SWAGGER
@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("restricted", "refusal"), [(with_tokens, "401: "), (with_a_header, "403: ")]
)
async def test_the_page_takes_what_the_server_wants_of_a_caller(
    open_with, tmp_path, restricted, refusal
):
    async with open_with(**restricted(tmp_path)) as site, open_page(tmp_path / "p") as page:
        await page.open(f"http://127.0.0.1:{site.frontend.port}/docs")
        await page.until(f"document.body.innerText.includes('{refusal}')")
        await page.until("!!document.querySelector('.btn.authorize')")
        await page.settled()
        await page.value("document.querySelector('.btn.authorize').click()")
        await page.until("!!document.querySelector('.auth-container input')")
        await page.value(
            """(() => {
            const input = document.querySelector('.auth-container input');
            const set = Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, 'value').set;
            set.call(input, 'secret');
            input.dispatchEvent(new Event('input', {bubbles: true}));
            input.dispatchEvent(new Event('change', {bubbles: true}));
            })()"""
        )
        await page.value("document.querySelector('.auth-btn-wrapper .authorize').click()")
        await page.value("document.querySelector('.auth-btn-wrapper .btn-done').click()")
        status, text = await execute(page, await open_box(page, "/v2/models/echo/infer"))

    assert status == 200, text
    assert json.loads(text)["outputs"][0]["data"] == [0.5]


@SWAGGER
@pytest.mark.timeout(300)
async def test_a_file_is_uploaded_from_the_page(site, tmp_path):
    file = tmp_path / "picture.bin"
    file.write_bytes(b"a picture")
    async with open_page(tmp_path / "profile") as page:
        await page.open(f"http://127.0.0.1:{site.frontend.port}/docs")
        box = await open_box(page, "/v2/models/words/infer")
        await page.value(
            f"""(() => {{
            const choice = {box}.querySelector('.opblock-section-request-body select');
            choice.value = 'multipart/form-data';
            choice.dispatchEvent(new Event('change', {{bubbles: true}}));
            }})()"""
        )
        await page.until(f"!!({box}).querySelector('input[type=file]')")
        await page.choose_file(f"{box}.querySelector('input[type=file]')", file)
        status, text = await execute(page, box)

    assert status == 200, text
    assert json.loads(text)["outputs"][0]["data"] == ["a picture"]
