"""The console of a router: what the port for operators answers its page."""

import asyncio
import json
import urllib.request
from types import SimpleNamespace

import pytest
from core_router.operate.console import page_of
from core_router.operate.fleet import Fleet
from core_router.options import RouterOptions
from core_router.router import Router
from core_router.servers.server import Address, Server
from core_router.servers.server_model import ServerModel
from routing.requests import PATIENCE_S, ask, inputs, outputs, until
from routing.running import good, refuse, reset, said
from routing.tokens import ROLES, bearer

from core.errors import CoreError

pytest.importorskip("core_console", reason="core-web-console is not installed")

INFER = "/v2/models/{}/infer"


class Events:
    """The stream of an open page."""

    def __init__(self, port, token=""):
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        request = urllib.request.Request(f"http://127.0.0.1:{port}/console/stream", headers=headers)
        self._answer = urllib.request.urlopen(request, timeout=PATIENCE_S)

    def next(self):
        """Return name and data of the next event; None at the end."""
        if not (line := self._answer.readline()):
            return None
        data = json.loads(self._answer.readline().removeprefix(b"data: "))
        self._answer.readline()
        return line.decode().removeprefix("event: ").strip(), data

    def close(self):
        self._answer.close()


@pytest.fixture
def look():
    """Return the whole state that a page gets."""

    def whole(router):
        events = Events(router.admin)
        name, data = events.next()
        events.close()
        assert name == "whole"
        return data

    return whole


def test_the_page_and_its_files_name_no_other_host(router):
    page = ask(router.admin, "/console")
    script = ask(router.admin, "/console/app.js")

    assert "default-src 'none'" in page.headers["Content-Security-Policy"]
    assert page.headers["Content-Type"] == "text/html; charset=utf-8"
    assert script.headers["Content-Type"] == "text/javascript; charset=utf-8"
    assert ask(router.admin, "/console/secret.txt").status == 404


def test_servers_have_their_state_and_what_was_sent_to_them(route, scripted, look):
    works, breaks = scripted(good), scripted(reset)
    router = route([works.name, breaks.name, "127.0.0.1:9"], limits={"retries": 0})
    for _ in range(30):
        ask(router.port, INFER.format("m"), inputs(1.0))

    found = look(router)

    rows = {each["name"]: each for each in found["servers"]}
    states = {name: (each["state"], each["ejected"]) for name, each in rows.items()}
    assert states == {
        works.name: ("READY", []),
        breaks.name: ("READY", ["m"]),
        "127.0.0.1:9": ("DOWN", []),
    }
    assert "127.0.0.1" in rows["127.0.0.1:9"]["reason"]
    assert rows[works.name]["ok"] + rows[breaks.name]["failed"] == 30
    assert sum(rows[works.name]["buckets"]) == rows[works.name]["ok"] > 0
    assert rows[works.name]["models"] == 1
    assert all(abs(each["since_ms"] - found["at_ms"]) < 1000 * PATIENCE_S for each in rows.values())


def test_a_model_shows_which_servers_have_which_versions(route, scripted, look):
    one, other = scripted(good), scripted(good)
    other.index = [{"name": "m", "version": each, "state": "READY"} for each in ("10", "9")]
    other.index.append({"name": "spare", "version": "1", "state": "UNAVAILABLE"})
    router = route([one.name, other.name])

    found = look(router)

    (row,) = found["rows"]
    assert (row["model"], row["state"], row["versions"]) == ("m", "READY", ["1", "9", "10"])
    places = {each["name"]: each["versions"] for each in row["servers"]}
    assert places == {one.name: ["1"], other.name: ["9", "10"]}
    assert found["idle"] == [{"model": "spare", "reason": ""}]


def test_a_model_of_drained_servers_alone_says_where_it_is(route, scripted, look):
    server = scripted(good)
    router = route([server.name])
    drained = ask(router.admin, f"/servers/{server.name}/drain", method="POST").json

    (row,) = look(router)["rows"]

    assert row["state"] == "UNAVAILABLE"
    assert row["reason"] == f"no server takes requests for it; it is on {server.name}"
    assert drained["since_s"] == router.servers()[server.name]["since_s"]


def test_requests_go_on_while_the_router_looks_at_many_models():
    async def turns():
        turns = 0

        async def count():
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        counting = asyncio.create_task(count())
        found = await Fleet(router).look()
        counting.cancel()
        return len(found["rows"]), turns

    server = Server(Address("gpu1", 8000))
    for number in range(200):
        name = f"m{number}"
        model = server.models[name] = ServerModel(server, name)
        model.versions = frozenset({"1"})
    router = Router(RouterOptions((), grpc_port=None))
    router.table.servers[server.name] = server
    router.servers.since_s = lambda server: 0.0

    assert asyncio.run(turns()) == (200, pytest.approx(20, abs=5))


def test_a_page_gets_only_models_that_have_changed(router):
    events = Events(router.admin)
    first = events.next()[1]
    ask(router.port, INFER.format("only_1"), inputs(1.0))
    changed = []
    while not changed:
        name, delta = events.next()
        changed = [each["model"] for each in delta["rows"]]
    events.close()

    assert {"who", "only_1"} <= {each["model"] for each in first["rows"]}
    assert (name, changed) == ("delta", ["only_1"])


def test_the_router_shows_its_retries(route, scripted, look):
    router = route([scripted(refuse).name, scripted(good).name])
    for _ in range(20):
        ask(router.port, INFER.format("m"), inputs(1.0))

    found = look(router)

    assert found["router"]["retries"]["refused"] == router.metric("core_router_retries") > 0
    assert found["processes"][0]["rss"] > 0


def test_a_warning_of_the_router_is_in_its_log(route, scripted):
    server = scripted(good)
    router = route([server.name])
    server.close()

    def texts():
        return [each["text"] for each in ask(router.admin, "/console/notices").json["notices"]]

    until(lambda: any(f"server {server.name} is down" in each for each in texts()))


def test_a_model_is_tried_on_a_server_that_has_it(router, three):
    before = router.metric("core_router_responses", model="only_2")

    answer = ask(router.admin, INFER.format("only_2"), inputs(7.0))

    assert outputs(answer)[-1] == 2
    assert "Content-Encoding" not in answer.headers
    assert router.metric("core_router_responses", model="only_2") == before + 1
    assert ask(router.admin, "/v2/models/only_0").json["name"] == "only_0"


def test_a_sequence_that_is_tried_stays_on_its_server(router):
    def sums(start, end=False):
        value = inputs(1.0)
        value["parameters"] = {"sequence_id": 4711, "sequence_start": start, "sequence_end": end}
        return outputs(ask(router.admin, INFER.format("sums"), value))

    found = [sums(True), sums(False), sums(False, True)]

    assert [each[0] for each in found] == [1.0, 2.0, 3.0]
    assert len({each[1] for each in found}) == 1


def test_a_sequence_whose_server_has_ended_says_so(route, scripted):
    servers = {each.name: each for each in (scripted(good), scripted(good))}
    router = route(list(servers), check_timeout_s=PATIENCE_S)
    ask(router.admin, INFER.format("m"), inputs(1.0, sequence_id=9, sequence_start=True))
    (name,) = (name for name, each in servers.items() if each.requests)
    servers[name].close()
    until(lambda: router.servers()[name]["state"] == "down")

    answer = ask(router.admin, INFER.format("m"), inputs(1.0, sequence_id=9))

    assert answer.status == 503
    assert answer.json["error"].startswith(
        f"no server takes the request for model 'm'; sequence 9 was on server {name}, which "
    )
    assert "begin the sequence again" in answer.json["error"]


def test_a_sequence_goes_on_if_its_last_request_is_lost(route, scripted):
    server = scripted(good)
    router = route([server.name])
    ask(router.admin, INFER.format("m"), inputs(1.0, sequence_id=9, sequence_start=True))
    found = []
    for respond in (reset, good):
        server.respond = respond
        answer = ask(router.admin, INFER.format("m"), inputs(1.0, sequence_id=9, sequence_end=True))
        found.append((answer.status, router.servers()[server.name]["sequences"]))

    assert found == [(502, 1), (200, 0)]


def test_a_load_reaches_all_servers(route, scripted):
    async def respond(reader, writer, line, body):
        writer.write(said(b""))

    servers = [scripted(respond) for _ in range(2)]
    router = route([each.name for each in servers])

    answer = ask(router.admin, "/v2/repository/models/m/load", {})

    assert answer.status == 200
    line = "POST /v2/repository/models/m/load HTTP/1.1"
    assert [each.requests for each in servers] == [[line]] * 2


def test_the_error_of_a_server_reaches_the_page(route, scripted):
    broken, full = route([scripted(reset).name]), route([scripted(refuse).name])

    lost = ask(broken.admin, INFER.format("m"), inputs(1.0))
    refused = ask(full.admin, INFER.format("m"), inputs(1.0))

    assert lost.status == 502 and lost.json["error"].startswith("server 127.0.0.1:")
    assert (refused.status, refused.json) == (503, {"error": "full"})


def test_a_session_says_what_its_caller_may_do(route, scripted, tokens):
    router = route([scripted(good).name], admin_tokens=str(tokens))

    found = {each: ask(router.admin, "/console/session", headers=bearer(each)) for each in ROLES}
    wrong = ask(router.admin, "/console/session", headers={"Authorization": "Bearer wrong"})

    assert wrong.status == 401 and wrong.json == {"error": "the token is not known"}
    assert {name: each.json["caller"] for name, each in found.items()} == {
        each: each for each in ROLES
    }
    assert found["ann"].json["routes"] == []
    assert found["ben"].json["routes"] == ["GET /servers", "GET /shares"]
    assert "POST /servers/{name}/drain" in found["cat"].json["routes"]
    assert found["ann"].json["may"]["change_infer"] and not found["ben"].json["may"]["change_load"]


def test_a_token_that_is_removed_ends_the_stream(route, scripted, tokens):
    router = route([scripted(good).name], admin_tokens=str(tokens), reload_s=0.1)
    events = Events(router.admin, "token-ben")
    events.next()

    lines = tokens.read_text().splitlines(keepends=True)
    tokens.write_text("".join(each for each in lines if not each.startswith("ben")))
    names = []
    while (event := events.next()) is not None:
        names.append(event[0])
    events.close()

    assert names[-1] == "refused"


def test_the_end_of_the_router_ends_the_events(route, scripted):
    router = route([scripted(good).name])
    events = Events(router.admin)
    events.next()

    router.close()

    while events.next() is not None:
        pass
    events.close()


@pytest.mark.parametrize(
    ("console", "address", "is_on"),
    [
        (None, "127.0.0.1", True),
        (None, "localhost", True),
        (None, "0.0.0.0", False),
        (True, "0.0.0.0", True),
        (False, "127.0.0.1", False),
    ],
)
def test_the_page_is_for_this_machine_unless_an_option_says_otherwise(console, address, is_on):
    router = SimpleNamespace(options=SimpleNamespace(console=console, admin_address=address))
    page = page_of(router)

    assert (page is not None) is is_on
    if page is not None:
        page.close()


def test_without_the_distribution_there_is_no_page(monkeypatch, route, scripted):
    monkeypatch.setenv("CORE_BLOCK", "core-web-console")
    router = route([scripted(good).name])
    wanted = SimpleNamespace(options=SimpleNamespace(console=True, admin_address="127.0.0.1"))

    assert ask(router.admin, "/console").status == ask(router.admin, "/v2").status == 404
    assert ask(router.admin, "/servers").status == 200
    with pytest.raises(CoreError, match="install core-web-console"):
        page_of(wanted)
