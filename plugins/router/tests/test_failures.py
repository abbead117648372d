"""Servers that die, refuse and hang: which requests another server gets, and what the client sees."""

import asyncio
import gzip
import json

import pytest
from routing.requests import ask, inputs, until
from routing.running import good, refuse, reset, said, silent

INFER = "/v2/models/m/infer"


def infer(router, **more):
    return ask(router.port, INFER, inputs(1.0), **more)


@pytest.fixture
def bad_and_good(scripted, route):
    """Return a function that makes a router before a server that misbehaves and one that does not."""

    def make(respond, limits=None, **options):
        bad, fine = scripted(respond), scripted(good)
        return bad, fine, route([bad.name, fine.name], limits, **options)

    return make


def test_an_inference_that_was_lost_is_repeated(bad_and_good):
    bad, _fine, router = bad_and_good(reset)

    replies = [infer(router) for _ in range(20)]

    assert {each.status for each in replies} == {200}
    assert len(bad.requests) > 0
    assert router.metric("core_router_retries", reason="lost") == len(bad.requests)
    assert router.metric("core_router_lost", server=bad.name) == len(bad.requests)


@pytest.mark.parametrize(
    "body",
    [
        lambda number: json.dumps(inputs(1.0, sequence_id=number)).encode(),
        lambda number: gzip.compress(b"{}"),
        lambda number: b"inputs=1",
    ],
)
def test_what_may_belong_to_a_sequence_is_not_repeated(bad_and_good, body):
    bad, fine, router = bad_and_good(reset)

    statuses = [ask(router.port, INFER, body(number)).status for number in range(1, 21)]

    assert statuses.count(502) == len(bad.requests) > 0
    assert statuses.count(200) == len(fine.requests)


def test_what_changes_a_server_is_not_repeated(bad_and_good):
    bad, fine, router = bad_and_good(reset)

    statuses = [ask(router.port, "/v2/models/m/other", {}).status for _ in range(20)]

    assert statuses.count(502) == len(bad.requests) > 0
    assert statuses.count(200) == len(fine.requests)


def test_the_error_of_a_lost_request_names_the_server(bad_and_good):
    bad, _, router = bad_and_good(reset)

    replies = [ask(router.port, "/v2/models/m/other", {}) for _ in range(10)]

    text = next(each.json["error"] for each in replies if each.status == 502)
    assert bad.name in text and "model 'm' was lost" in text


def test_a_request_that_a_server_refuses_goes_to_another(bad_and_good):
    bad, _fine, router = bad_and_good(refuse)

    replies = [infer(router) for _ in range(20)]

    assert {each.body[:5] for each in replies} == {b"good:"}
    assert router.metric("core_router_retries", reason="refused") == len(bad.requests) > 0


def test_if_all_servers_refuse_the_client_gets_their_answer(scripted, route):
    servers = [scripted(refuse), scripted(refuse)]

    reply = infer(route([each.name for each in servers]))

    assert (reply.status, reply.json) == (503, {"error": "full"})
    assert [len(each.requests) for each in servers] == [1, 1]


def test_a_failed_model_answers_for_itself(bad_and_good):
    async def fail(reader, writer, line, body):
        writer.write(said(b'{"error":"division by zero"}', 500))

    bad, _fine, router = bad_and_good(fail)

    statuses = [infer(router).status for _ in range(60)]

    # Five failures in a row, and the other server gets the requests.
    assert statuses.count(500) == len(bad.requests) == 5
    assert router.metric("core_router_ejections", server=bad.name) == 1


def test_a_server_that_is_gone_costs_no_request(bad_and_good, scripted):
    bad, _fine, router = bad_and_good(good)
    bad.close()

    assert {infer(router).status for _ in range(20)} == {200}
    until(lambda: router.servers()[bad.name]["state"] == "down")


def test_a_server_that_is_not_ready_gets_no_new_requests(bad_and_good):
    bad, _fine, router = bad_and_good(good)
    bad.ready = 503
    until(lambda: router.servers()[bad.name]["state"] == "not ready")
    before = len(bad.requests)

    assert {infer(router).status for _ in range(20)} == {200}
    assert len(bad.requests) == before


def test_a_server_that_hangs_loses_its_requests_to_another(scripted, route):
    stuck, fine = scripted(silent), scripted(good)
    router = route([stuck.name, fine.name], check_timeout_s=0.1)
    fine.index = []  # the first request can only go to `stuck`
    until(lambda: not router.servers()[fine.name]["models"])

    async def later():
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(None, infer, router)

    async def scenario():
        waiting = asyncio.ensure_future(later())
        while not stuck.requests:
            await asyncio.sleep(0.01)
        fine.index = [{"name": "m", "version": "1", "state": "READY"}]
        stuck.is_hung = True
        return await waiting

    assert asyncio.run(scenario()).body[:5] == b"good:"
    assert router.servers()[stuck.name]["state"] == "down"


def test_a_response_that_breaks_off_is_not_taken_for_a_whole_one(scripted, route, raw):
    async def half(reader, writer, line, body):
        writer.write(said(b"x" * 100)[:-50])
        await asyncio.sleep(0.05)
        writer.transport.abort()

    async def half_of_chunks(reader, writer, line, body):
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n")
        await asyncio.sleep(0.05)
        writer.transport.abort()

    for respond in (half, half_of_chunks):
        client = raw(route([scripted(respond).name]).port)
        client.send(b"GET /v2/models/m HTTP/1.1\r\nHost: x\r\n\r\n")
        with pytest.raises(ConnectionError):
            while client.socket.recv(1000):
                pass


@pytest.mark.parametrize(
    "data",
    [
        b"nonsense\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"x" * 20_000,
    ],
)
def test_a_response_that_is_not_http_counts_as_lost(bad_and_good, data):
    async def nonsense(reader, writer, line, body):
        writer.write(data)

    bad, _fine, router = bad_and_good(nonsense)

    assert {infer(router).body[:5] for _ in range(20)} == {b"good:"}
    assert router.metric("core_router_lost", server=bad.name) > 0


def test_bytes_after_a_response_reach_no_client(scripted, route):
    async def more(reader, writer, line, body):
        writer.write(said(b"good:") + b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil")

    router = route([scripted(more).name])

    assert {infer(router).body for _ in range(10)} == {b"good:"}


def test_a_lost_request_is_repeated_a_few_times_only(scripted, route):
    servers = [scripted(reset) for _ in range(4)]

    reply = infer(route([each.name for each in servers], {"retries": 1}))

    assert reply.status == 502
    assert sum(len(each.requests) for each in servers) == 2


def test_a_sequence_does_not_go_on_elsewhere(scripted, route, three):
    """The state of a sequence ends with its server: the client must begin it again."""
    router = route([each.name for each in three])
    path = "/v2/models/sums/infer"
    start = ask(router.port, path, inputs(1.0, sequence_id=9, sequence_start=True)).json
    name = three[int(start["outputs"][0]["data"][1])].name
    router.router.table.servers[name].state = type(router.router.table.servers[name].state).DOWN

    reply = ask(router.port, path, inputs(1.0, sequence_id=9))

    ask(int(name.partition(":")[2]), path, inputs(1.0, sequence_id=9, sequence_end=True))
    assert reply.status == 503
    assert f"sequence 9 was on server {name}" in reply.json["error"]
    assert "begin the sequence again" in reply.json["error"]


def test_the_servers_own_end_of_a_connection_costs_nothing(scripted, route, raw):
    async def once(reader, writer, line, body):
        writer.write(said(b"good:", 200, "Connection: close"))
        writer.close()

    client = raw(route([scripted(once).name]).port)
    for _ in range(5):
        client.send(b"GET /v2/models/m HTTP/1.1\r\nHost: x\r\n\r\n")
        status, fields, body = client.receive()
        assert (status, body) == (200, b"good:")
        assert "connection" not in fields


def test_a_response_until_the_end_of_the_connection_is_whole(scripted, route):
    async def until_close(reader, writer, line, body):
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 1000)
        writer.close()

    assert infer(route([scripted(until_close).name])).body == b"x" * 1000
