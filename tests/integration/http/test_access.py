"""Access over HTTP: every route, on both paths, for callers with and without tokens, roles and limits."""

import asyncio
import json
from itertools import product

import aiohttp
import pytest

from core.control.repository import RepositoryControl
from core.errors import Exhausted
from frontends.http.frontend import HttpFrontend
from frontends.http.router import table
from frontends.shared.access import CATEGORIES, Credentials
from frontends.shared.access.limits import Limits
from frontends.shared.access.tokens import line_of
from frontends.shared.context import context_of

try:
    from re import _parser as parser  # Python 3.11 and newer
except ImportError:
    import sre_parse as parser

METHODS = ("GET", "POST", "PUT")
ROLES = ("infer", "read", "manage")
INFER = "/v2/models/echo/infer"


def paths_of(pattern):
    """One path for each way that a route's pattern leaves open: with and without its optional parts."""
    found = sorted({"".join(parts) for parts in _walk(parser.parse(pattern.pattern))})
    assert all(pattern.fullmatch(each) for each in found)
    return found


def _walk(parsed):
    return product(*(_ways(str(operation), argument) for operation, argument in parsed))


def _ways(operation, argument):
    if operation == "LITERAL":
        return [chr(argument)]
    if operation == "SUBPATTERN":
        return ["".join(parts) for parts in _walk(argument[-1])]
    if operation == "BRANCH":
        return ["".join(parts) for each in argument[1] for parts in _walk(each)]
    if operation == "MAX_REPEAT":
        least, most, inner = argument
        some = ["".join(parts) for parts in _walk(inner)]
        return ["", *some] if (least, int(most)) == (0, 1) else some
    if operation in ("IN", "NOT_LITERAL"):  # a digit fits all that are in use: [0-9], [^/]
        return ["1"]
    raise AssertionError(f"a pattern has {operation}: say here what it matches")


ROUTES = table({"repository": RepositoryControl})
EVERY = [(route, path) for route in ROUTES if not route.is_open for path in paths_of(route.path)]


def bearer(token):
    return {"Authorization": f"Bearer {token}"}


@pytest.fixture
def tokens(tmp_path):
    """A file in which the token of a role is its name."""
    path = tmp_path / "tokens"
    lines = [line_of(role, [role], role) for role in ROLES]
    lines.append(line_of("slow", ["infer", "read"], "slow", Limits(rate=0.001, burst=2)))
    lines.append(line_of("one", ["infer"], "one", Limits(concurrent=1)))
    path.write_text("\n".join(lines))
    return path


@pytest.fixture
def passed(monkeypatch):
    """Paths of the requests that came to aiohttp."""
    found = []
    for name in ("_handle", "_handle_intercepted"):
        handle = getattr(HttpFrontend, name)

        async def counted(self, request, handle=handle, name=name):
            if not (name == "_handle" and self._context.policy is not None):
                found.append(request.path)
            return await handle(self, request)

        monkeypatch.setattr(HttpFrontend, name, counted)
    return found


def test_every_route_has_a_category():
    assert [route.path.pattern for route in ROUTES if route.category not in CATEGORIES] == []


def test_aliases_are_walked_too():
    found = {path for _, path in EVERY}
    assert len(found) >= 39
    assert {
        "/v2/models/1/versions/1/infer",
        "/v2/models/1/versions/1/generate_stream",
        "/v2/repository/1/models/1/load",
        "/v2/models/1/trace/setting",
        "/v2/cudasharedmemory/region/1/unregister",
    } <= found


async def statuses(site, headers):
    """(route, path, method) → status, over one connection."""
    found = {}
    connection = await site.connect()
    for route, path in EVERY:
        for method in METHODS:
            body = b"" if method == "POST" else None
            answer = await connection.ask(method, path, body, headers)
            found[route.category, path, method] = answer.status
            if answer.headers.get("connection") == "close":
                connection = await site.connect()
    return found


def test_only_the_files_of_the_page_are_open_to_all():
    found = {route.path.pattern for route in ROUTES if route.is_open}

    assert found == {"/docs", "/docs/(?P<file>[\\w.-]+)"}


@pytest.mark.parametrize("path", ["/docs", "/docs/start.js", "/docs/start.css"])
async def test_a_file_of_the_page_needs_neither_token_nor_header(open_with, tokens, path):
    pytest.importorskip("flask_swagger_ui", reason="Swagger UI is not installed")
    restricted = {"metadata": ("Key", "s")}
    async with open_with(auth_tokens=str(tokens), http_restricted_api=restricted) as site:
        assert (await site.ask("GET", path)).status == 200
        assert (await site.ask("POST", path, b"")).status == 405


async def test_without_a_token_every_route_but_health_is_closed(open_with, tokens):
    async with open_with(auth_tokens=str(tokens)) as site:
        found = await statuses(site, {})

    assert {key: status for key, status in found.items() if status != 401} == {
        (category, path, method): 200 if method == "GET" else 405
        for category, path, method in found
        if category == "health" and "models" not in path
    } | {
        (category, path, method): 400 if method == "GET" else 405
        for category, path, method in found
        if category == "health" and "models" in path
    }


async def test_health_is_restricted_if_configured(open_with, tokens):
    async with open_with(auth_tokens=str(tokens), auth_open=()) as site:
        assert set((await statuses(site, {})).values()) == {401}


@pytest.mark.parametrize("role", ROLES)
async def test_a_role_gets_as_far_as_it_may_on_every_route(open_with, tokens, role):
    looks = {"metadata", "model-config", "health"}
    all_of = {
        "infer": looks | {"inference"},
        "read": looks | {"statistics"},
        "manage": looks | {"statistics", "model-repository", "trace", "logging"},
    }[role]

    async with open_with(auth_tokens=str(tokens)) as site:
        found = await statuses(site, bearer(role))

    for (category, path, method), status in found.items():
        may = category in all_of
        if category == "shared-memory":
            may = role == "infer" or method == "GET"
        if role == "read" and category in ("model-repository", "trace", "logging"):
            may = method == "GET" or path.endswith("/index")
        assert (status not in (401, 403)) == may, (category, path, method, status)


async def test_every_route_can_be_restricted_on_both_paths(open_with):
    rules = {category: ("Key", "s") for category in CATEGORIES if category != "metrics"}
    async with open_with(http_restricted_api=rules) as site:
        for wrong in ({}, {"Key": "S"}):
            assert set((await statuses(site, wrong)).values()) == {403}
        assert 403 not in (await statuses(site, {"Key": "s"})).values()


async def test_a_restricted_inference_uses_the_fast_path(open_with, lane, passed, document):
    async with open_with(http_restricted_api={"inference": ("key", "s")}) as site:
        connection = await site.connect()
        for _ in range(3):
            assert (await connection.ask("POST", INFER, document(1), {"KEY": "s"})).status == 200
        assert len(passed) == (3 if lane == "aiohttp" else 0)

        refused = await connection.ask("POST", INFER, document(1), {"key": "t"})

    assert refused.json == {"error": "This API is restricted, expecting header 'key'"}
    assert (refused.status, passed[-1]) == (403, INFER)
    assert len(site.backend.requests) == 3


async def test_a_known_caller_uses_the_fast_path(open_with, lane, passed, document, tokens):
    async with open_with(auth_tokens=str(tokens)) as site:
        connection = await site.connect()
        for headers in (bearer("infer"), bearer("infer"), {"X-API-Key": "infer"}):
            answer = await connection.ask("POST", INFER, document(1), headers)
            assert answer.json["outputs"][0]["data"] == [1]

    assert len(passed) == (3 if lane == "aiohttp" else 0)


@pytest.mark.parametrize(
    "headers,status,challenge",
    [
        ({}, 401, 'Bearer realm="core"'),
        (bearer("hush"), 401, 'Bearer realm="core", error="invalid_token"'),
        ({"X-Api-Key": "hush"}, 401, 'Bearer realm="core", error="invalid_token"'),
        ({"Authorization": "Basic aHVzaA=="}, 401, 'Bearer realm="core", error="invalid_token"'),
        (
            bearer("infer") | {"X-Api-Key": "infer"},
            401,
            'Bearer realm="core", error="invalid_token"',
        ),
        (bearer("read"), 403, None),
    ],
)
async def test_a_refusal_has_the_reason_and_no_secret(
    open_with, tokens, document, caplog, headers, status, challenge
):
    async with open_with(auth_tokens=str(tokens)) as site:
        answer = await site.infer("echo", document(1), headers)

    assert (answer.status, answer.headers.get("www-authenticate")) == (status, challenge)
    assert answer.headers["content-type"] == "application/json"
    assert set(answer.json) == {"error"}
    assert "hush" not in str(answer.json) + caplog.text
    assert site.backend.requests == []


async def test_an_admitted_caller_does_not_admit_the_next_one(open_with, tokens, document):
    """On one connection, as a proxy sends requests of many."""
    async with open_with(auth_tokens=str(tokens)) as site:
        connection = await site.connect()
        found = []
        for headers in (bearer("infer"), {}, bearer("infer"), bearer("read"), bearer("infer")):
            found.append((await connection.ask("POST", INFER, document(1), headers)).status)
            if found[-1] != 200:  # its body was not read
                connection = await site.connect()

    assert found == [200, 401, 200, 403, 200]


async def test_a_token_that_was_taken_away_counts_no_more(open_with, tokens, document):
    async with open_with(auth_tokens=str(tokens)) as site:
        connection = await site.connect()
        assert (await connection.ask("POST", INFER, document(1), bearer("infer"))).status == 200

        tokens.write_text(line_of("new", ["infer"], "another"))
        context_of(site.server).files.look()

        assert (await connection.ask("POST", INFER, document(1), bearer("infer"))).status == 401
        assert (await site.infer("echo", document(1), bearer("another"))).status == 200


async def test_a_caller_beyond_its_rate_gets_a_retry_time(open_with, tokens, document):
    async with open_with(auth_tokens=str(tokens)) as site:
        connection = await site.connect()
        for _ in range(2):
            assert (await connection.ask("POST", INFER, document(1), bearer("slow"))).status == 200
        refused = await connection.ask("POST", INFER, document(1), bearer("slow"))
        other = await site.infer("echo", document(1), bearer("infer"))
        described = await site.ask("GET", "/v2", None, bearer("slow"))
        health = await site.ask("GET", "/v2/health/ready", None, bearer("slow"))

    assert refused.status == 429
    assert 0 < int(refused.headers["retry-after"]) <= 1000
    assert "caller 'slow' has sent more than its limit of 0.001 requests" in refused.json["error"]
    assert (other.status, described.status, health.status) == (200, 429, 200)


async def test_requests_that_come_together_are_counted_in_their_order(
    open_with, tokens, document, message
):
    async with open_with(auth_tokens=str(tokens)) as site:
        connection = await site.connect()
        connection.send(message("POST", INFER, document(1), bearer("slow")) * 4)
        found = [(await connection.reply()).status for _ in range(3)]

    assert found == [200, 200, 429]
    assert len(site.backend.requests) == 2


async def test_an_admitted_caller_is_checked_again_after_some_time(open_with, tokens, document):
    async with open_with(auth_tokens=str(tokens)) as site:
        policy = context_of(site.server).policy
        connection = await site.connect()
        assert (await connection.ask("POST", INFER, document(1), bearer("infer"))).status == 200
        verified = len(policy._callers)

        now_s, policy._tokens = policy.now_s(), {}
        assert (await connection.ask("POST", INFER, document(1), bearer("infer"))).status == 200
        policy.now_s = lambda: now_s + 400

        assert (await connection.ask("POST", INFER, document(1), bearer("infer"))).status == 401
    assert verified == 1


async def test_the_number_of_concurrent_requests_is_limited(open_with, tokens, document):
    async with open_with(auth_tokens=str(tokens)) as site:
        first = await site.connect()
        body = json.dumps(document(1))
        head = "POST /v2/models/gated/infer HTTP/1.1\r\nHost: x\r\nX-Api-Key: one\r\n"
        first.send(f"{head}Content-Length: {len(body)}\r\n\r\n{body}".encode())
        await asyncio.wait_for(site.backend.running.wait(), 10)

        refused = await site.infer("echo", document(1), bearer("one"))
        site.backend.gate.set()
        answered = await first.reply()
        again = await site.infer("echo", document(1), bearer("one"))

    assert (refused.status, refused.headers["retry-after"]) == (429, "1")
    assert (answered.status, again.status) == (200, 200)


@pytest.mark.parametrize("sent", ["half of the body", "all of the body"])
async def test_a_disconnected_client_frees_its_concurrent_request(
    open_with, tokens, document, sent
):
    async with open_with(auth_tokens=str(tokens)) as site:
        first = await site.connect()
        body = json.dumps(document(1))
        head = "POST /v2/models/gated/infer HTTP/1.1\r\nHost: x\r\nX-Api-Key: one\r\n"
        whole = f"{head}Content-Length: {len(body)}\r\n\r\n{body}".encode()
        first.send(whole if sent == "all of the body" else whole[:-5])
        caller = context_of(site.server).policy
        one = await _until(lambda: _inside(caller))
        first.cut()

        await _until(lambda: not _inside(caller))
        assert one
        assert (await site.infer("echo", document(1), bearer("one"))).status == 200


def _inside(policy):
    """Return whether the caller `one` has a running request."""
    try:
        policy.identify(Credentials("one")).begin_call().end()
    except Exhausted:
        return True
    return False


async def _until(condition):
    async def wait():
        while not condition():
            await asyncio.sleep(0.001)
        return True

    return await asyncio.wait_for(wait(), 10)


async def test_without_tokens_an_address_has_the_limits(open_with, document):
    async with open_with(limit_rate=0.001, limit_burst=2) as site:
        found = [(await site.infer("echo", document(1))).status for _ in range(3)]
        assert found == [200, 200, 429]
        assert (await site.ask("GET", "/v2/health/live")).status == 200


async def test_a_stream_counts_until_its_end(open_with, tokens):
    async with open_with(auth_tokens=str(tokens)) as site:
        answer = await site.ask(
            "POST", "/v2/models/stream/generate_stream", {"x": [1.0, 2.0]}, bearer("one")
        )
        again = await site.ask(
            "POST", "/v2/models/stream/generate_stream", {"x": [1.0, 2.0]}, bearer("one")
        )
    assert {answer.status, again.status} <= {200, 429}
    assert answer.status == 200


async def test_each_message_of_a_websocket_counts(open_with, tokens):
    async with open_with(auth_tokens=str(tokens)) as site, aiohttp.ClientSession() as client:
        url = f"http://127.0.0.1:{site.frontend.port}/v2/models/stream/generate_stream"
        with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
            await client.ws_connect(url)
        async with client.ws_connect(url, headers=bearer("slow")) as socket:
            said = []
            for number in range(3):
                await socket.send_str(json.dumps({"id": str(number), "x": [1.0]}))
                while "final" not in (message := await socket.receive_json(timeout=10)):
                    said.append(message)

    assert refused.value.status == 401
    assert ["error" in message for message in said if message.get("id") == "2"] == [True]
    assert "more than its limit" in said[-1]["error"]


async def test_a_websocket_has_no_answers_after_its_token_was_taken_away(open_with, tokens):
    async with open_with(auth_tokens=str(tokens)) as site, aiohttp.ClientSession() as client:
        url = f"http://127.0.0.1:{site.frontend.port}/v2/models/stream/generate_stream"
        async with (
            client.ws_connect(url, headers=bearer("infer")) as used,
            client.ws_connect(url, headers=bearer("infer")) as unused,
        ):
            await used.send_str('{"x": [1.0]}')
            while "final" not in (before := await used.receive_json(timeout=10)):
                assert "error" not in before

            tokens.write_text(line_of("read", ["read"], "read"))
            context_of(site.server).files.look()
            for socket in (used, unused):
                await socket.send_str('{"x": [1.0]}')
                assert await socket.receive_json(timeout=10) == {"error": "the token is not known"}


async def test_settings_are_read_but_not_changed_where_that_is_turned_off(open_with):
    async with open_with(allow_remote_settings=False) as site:
        settings = {"/v2/logging": {"log_info": False}, "/v2/trace/setting": {"trace_rate": "1"}}
        for path, change in settings.items():
            assert (await site.ask("GET", path)).status == 200
            refused = await site.ask("POST", path, change)
            assert refused.status == 501
            assert "--allow-remote-settings=true" in refused.json["error"]
