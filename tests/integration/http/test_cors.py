"""Pages of other origins: the fields of CORS in every response, on both paths (--http-cors-origins)."""

import base64
import json

import pytest
from chromium import open_page

from core.options.values import UsageError
from frontends.shared.access.tokens import line_of
from frontends.shared.forms import ORIGINS

LISTED = "https://a.example"
OTHER = "https://b.example"
CREDENTIALS = "access-control-allow-credentials"
ALLOWED = "access-control-allow-origin"
INFER = "/v2/models/echo/infer"


def preflight(origin, method="POST", headers="content-type,authorization"):
    return {
        "Origin": origin,
        "Access-Control-Request-Method": method,
        "Access-Control-Request-Headers": headers,
    }


def cors_fields(reply):
    return {
        name: value
        for name, value in reply.headers.items()
        if name.startswith("access-control-") or name == "vary"
    }


@pytest.mark.parametrize("origin", [None, LISTED, "null"])
async def test_without_the_flag_nothing_is_added(site, document, origin):
    headers = {} if origin is None else {"Origin": origin}

    for reply in (
        await site.infer("echo", document(1), headers),
        await site.ask("GET", "/v2", headers=headers),
        await site.ask("GET", "/nothing", headers=headers),
    ):
        assert cors_fields(reply) == {}
    refused = await site.ask("OPTIONS", INFER, headers=preflight(LISTED))
    assert (refused.status, cors_fields(refused)) == (405, {})


async def test_a_listed_origin_may_read_and_send_credentials(open_with, document):
    async with open_with(http_cors_origins=(LISTED,)) as site:
        for _ in range(3):  # the fast path keeps heads
            reply = await site.infer("echo", document(1), {"Origin": LISTED})
            assert reply.status == 200
            assert cors_fields(reply) == {
                ALLOWED: LISTED,
                CREDENTIALS: "true",
                "vary": "Origin",
                "access-control-expose-headers": (
                    "Endpoint-Load-Metrics, Inference-Header-Content-Length, Retry-After, "
                    "WWW-Authenticate"
                ),
            }


@pytest.mark.parametrize("path", ["/v2/models/absent", "/nothing", "/v2/models/echo/config"])
async def test_errors_and_all_other_responses_have_the_fields(open_with, path):
    async with open_with(http_cors_origins=(LISTED,)) as site:
        reply = await site.ask("GET", path, headers={"Origin": LISTED})

        assert reply.headers[ALLOWED] == LISTED


async def test_an_error_of_inference_has_the_fields(open_with):
    async with open_with(http_cors_origins=(LISTED,)) as site:
        reply = await site.infer("echo", b"{", {"Origin": LISTED})

        assert (reply.status, reply.headers[ALLOWED]) == (400, LISTED)


async def test_malformed_http_has_the_fields_of_no_origin(open_with):
    async with open_with(http_cors_origins=(LISTED,)) as site:
        connection = await site.connect()
        connection.send(b"GET /v2 HTTP/1.1\r\nHost: x\r\nOrigin: a\r\n b\r\n\r\n")

        assert ALLOWED not in (await connection.reply()).headers


@pytest.mark.parametrize(
    "origin",
    [
        OTHER,
        "null",
        "https://a.example.evil.example",
        "https://evil-a.example",
        "http://a.example",
        "https://a.example:8443",
        "https://a.exampl",
        "",
    ],
)
async def test_an_origin_that_is_not_listed_is_not_reflected(open_with, document, origin):
    async with open_with(http_cors_origins=(LISTED,)) as site:
        for reply in (
            await site.infer("echo", document(1), {"Origin": origin}),
            await site.ask("GET", "/v2", headers={"Origin": origin}),
        ):
            assert cors_fields(reply) == {"vary": "Origin"}
        refused = await site.ask("OPTIONS", INFER, headers=preflight(origin))
        assert refused.status == 403
        assert cors_fields(refused) == {"vary": "Origin"}


async def test_the_star_permits_others_without_credentials(open_with, document):
    async with open_with(http_cors_origins=(LISTED, "*")) as site:
        for origin in (OTHER, "null"):
            reply = await site.infer("echo", document(1), {"Origin": origin})
            assert reply.headers[ALLOWED] == "*"
            assert reply.headers["vary"] == "Origin"
            assert CREDENTIALS not in reply.headers
        reply = await site.infer("echo", document(1), {"Origin": LISTED})
        assert (reply.headers[ALLOWED], reply.headers[CREDENTIALS]) == (LISTED, "true")


async def test_the_star_alone_needs_no_vary(open_with):
    async with open_with(http_cors_origins=("*",)) as site:
        for headers in ({}, {"Origin": OTHER}):
            reply = await site.ask("GET", "/v2", headers=headers)
            assert (reply.headers[ALLOWED], "vary" in reply.headers) == ("*", False)


async def test_a_cache_keeps_the_responses_of_origins_apart(open_with):
    async with open_with(http_cors_origins=(LISTED,)) as site:
        reply = await site.ask("GET", "/v2")

        assert cors_fields(reply) == {"vary": "Origin"}


async def test_a_preflight_names_methods_and_headers(open_with):
    async with open_with(http_cors_origins=(LISTED,)) as site:
        reply = await site.ask("OPTIONS", INFER, headers=preflight(LISTED))

        assert (reply.status, reply.body) == (204, b"")
        assert reply.headers["access-control-allow-methods"] == "POST"
        assert reply.headers["access-control-allow-headers"] == "content-type,authorization"
        assert reply.headers["access-control-max-age"] == "600"
        assert reply.headers[ALLOWED] == LISTED
        both = await site.ask("OPTIONS", "/v2/logging", headers=preflight(LISTED, "GET"))
        assert both.headers["access-control-allow-methods"] == "GET, POST"


async def test_a_preflight_of_an_unknown_path_is_404(open_with):
    async with open_with(http_cors_origins=(LISTED,)) as site:
        assert (await site.ask("OPTIONS", "/nothing", headers=preflight(LISTED))).status == 404


async def test_options_without_the_questions_of_a_preflight_is_what_it_was(open_with):
    async with open_with(http_cors_origins=(LISTED,)) as site:
        assert (await site.ask("OPTIONS", INFER)).status == 405
        assert (await site.ask("OPTIONS", INFER, headers={"Origin": LISTED})).status == 405


@pytest.mark.parametrize("names", ["a b", "x:y", "a,,b", "ä", "a\tb, c;d"])
async def test_a_preflight_with_names_that_are_no_headers_is_refused(open_with, names):
    async with open_with(http_cors_origins=("*",)) as site:
        reply = await site.ask("OPTIONS", INFER, headers=preflight(OTHER, headers=names))

        assert reply.status == 400
        assert "access-control-allow-headers" not in reply.headers


async def test_a_preflight_needs_no_token_and_its_request_does(open_with, document, tmp_path):
    tokens = tmp_path / "tokens"
    tokens.write_text(line_of("i", ["infer"], "secret"))
    async with open_with(http_cors_origins=(LISTED,), auth_tokens=str(tokens)) as site:
        asked = await site.ask("OPTIONS", INFER, headers=preflight(LISTED))
        assert asked.status == 204

        refused = await site.infer("echo", document(1), {"Origin": LISTED})
        assert (refused.status, refused.headers[ALLOWED]) == (401, LISTED)
        # Not a preflight, so it is not open.
        assert (await site.ask("OPTIONS", "/v2/logging")).status == 401


async def test_a_preflight_needs_no_header_of_a_restricted_api(open_with, document):
    restricted = {"inference": ("key", "secret")}
    async with open_with(http_cors_origins=(LISTED,), http_restricted_api=restricted) as site:
        asked = await site.ask("OPTIONS", INFER, headers=preflight(LISTED, headers="key"))
        assert asked.status == 204
        assert (await site.infer("echo", document(1), {"Origin": LISTED})).status == 403
        given = {"Origin": LISTED, "key": "secret"}
        assert (await site.infer("echo", document(1), given)).headers[ALLOWED] == LISTED


UPGRADE = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": base64.b64encode(bytes(16)).decode(),
}


@pytest.mark.parametrize(
    ("origin", "status"), [(LISTED, 101), (OTHER, 403), ("null", 403), ("http://[", 403)]
)
async def test_a_websocket_is_for_listed_origins_only(open_with, origin, status):
    """It has the credentials of the browser, so the star does not permit it."""
    async with open_with(http_cors_origins=(LISTED, "*")) as site:
        connection = await site.connect()
        reply = await connection.ask(
            "GET", "/v2/models/echo/generate_stream", headers={**UPGRADE, "Origin": origin}
        )
        assert reply.status == status


@pytest.mark.parametrize(
    ("text", "origins"),
    [
        ("*", ("*",)),
        ("https://A.example,*", ("https://a.example", "*")),
        ("https://a.example/", ("https://a.example",)),
        ("https://a.example:443,http://a.example:80", ("https://a.example", "http://a.example")),
        ("http://a.example:8080", ("http://a.example:8080",)),
        ("http://[::1]:3000", ("http://[::1]:3000",)),
        ("tauri://localhost", ("tauri://localhost",)),
    ],
)
def test_origins_are_read_as_browsers_write_them(text, origins):
    assert ORIGINS.read("http-cors-origins", text) == origins


@pytest.mark.parametrize(
    "text",
    [
        "",
        "null",
        "a.example",
        "https://",
        "https://a.example/path",
        "https://*.example",
        "https://u@a",
    ],
)
def test_what_is_no_origin_is_refused(text):
    with pytest.raises(UsageError):
        ORIGINS.read("http-cors-origins", text)


ASK = """
fetch(%r, {method: "POST", headers: {"Content-Type": "application/json"}, body: %r})
  .then(response => response.json()).catch(String)
"""


@pytest.mark.timeout(300)
async def test_a_browser_lets_a_page_of_a_listed_origin_ask_and_no_other(
    open_anew, document, tmp_path
):
    """The page of one server asks another one."""
    body = json.dumps(document(1, 2))
    async with open_anew() as pages, open_page(tmp_path) as page:
        here = f"http://127.0.0.1:{pages.frontend.port}"
        await page.open(f"{here}/v2")
        await page.until("document.body.innerText.includes('extensions')")
        async with open_anew(http_cors_origins=(here,)) as site:
            url = f"http://127.0.0.1:{site.frontend.port}{INFER}"
            assert (await page.value(ASK % (url, body)))["outputs"][0]["data"] == [1, 2]
        async with open_anew(http_cors_origins=(LISTED,)) as site:
            url = f"http://127.0.0.1:{site.frontend.port}{INFER}"
            assert "Failed to fetch" in await page.value(ASK % (url, body))
