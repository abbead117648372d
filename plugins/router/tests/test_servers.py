"""A router before three servers of core."""

import asyncio
import json
import threading

import numpy as np
import pytest
import tritonclient.http as triton
from core_router.servers.addresses import read_servers
from core_router.servers.server import Address
from core_router.servers.source import AddressSource
from prometheus_client.parser import text_string_to_metric_families
from routing.requests import PATIENCE_S, ask, inputs, outputs, until
from routing.running import good

INFER = "/v2/models/{}/infer"


def who(port, model="who", **more):
    """Return the number of the server that answers."""
    return outputs(ask(port, INFER.format(model), inputs(5.0), **more))[-1]


def test_requests_are_spread_over_the_servers(router):
    assert {who(router.port) for _ in range(60)} == {0, 1, 2}


def test_a_request_reaches_the_server_that_has_its_model(router):
    for number in (0, 1, 2, 0):
        assert who(router.port, f"only_{number}") == number


def test_the_client_gets_what_the_server_has_sent(router, three):
    direct = ask(int(three[0].name.partition(":")[2]), INFER.format("only_0"), inputs(1.0))
    routed = ask(router.port, INFER.format("only_0"), inputs(1.0))

    assert routed.body == direct.body
    assert routed.headers.items() == direct.headers.items()


def test_the_errors_of_servers_reach_the_client(router):
    unknown = ask(router.port, INFER.format("unknown"), inputs(1.0))
    wrong = ask(router.port, INFER.format("who"), b"{")

    assert unknown.status in (400, 404)
    assert "unknown" in unknown.json["error"]
    assert wrong.status == 400


def test_tritons_client_works_with_binary_tensors(router):
    client = triton.InferenceServerClient(f"127.0.0.1:{router.port}")
    tensor = triton.InferInput("x", [300_000], "FP32")
    x = np.arange(300_000, dtype=np.float32)
    tensor.set_data_from_numpy(x)

    found = client.infer("who", [tensor]).as_numpy("y")

    assert (found[:-1] == x).all()
    assert client.is_server_ready() and client.is_model_ready("who")
    assert client.get_server_metadata()["name"]
    client.close()


def test_a_body_in_chunks_reaches_the_server(router, raw):
    client = raw(router.port)
    body = json.dumps(inputs(5.0)).encode()
    client.send(
        b"POST /v2/models/only_1/infer HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
    )
    for piece in (body[:10], body[10:]):
        client.send(b"%x\r\n%b\r\n" % (len(piece), piece))
    client.send(b"0\r\n\r\n")

    status, _, found = client.receive()

    assert (status, json.loads(found)["outputs"][0]["data"]) == (200, [5.0, 1.0])


def test_a_sequence_stays_on_its_server(router):
    seen = set()
    for key in range(1, 9):
        found = [
            outputs(
                ask(
                    router.port,
                    INFER.format("sums"),
                    inputs(float(i), sequence_id=key, sequence_start=i == 1, sequence_end=i == 4),
                )
            )
            for i in range(1, 5)
        ]
        assert [total for total, _ in found] == [1, 3, 6, 10]
        assert len({server for _, server in found}) == 1
        seen |= {server for _, server in found}
    assert len(seen) > 1
    assert router.metric("core_router_sequences") == 0


def test_a_head_that_is_not_passed_on_unchanged_does_not_hide_the_sequence(router, raw):
    body = json.dumps(inputs(1.0, sequence_id=5, sequence_start=True)).encode()
    head = b"POST /v2/models/sums/infer HTTP/1.1\r\nHost: x\r\nConnection: keep-alive\r\n"
    raw(router.port).send(head + b"Content-Length: %d\r\n\r\n%b" % (len(body), body))

    until(lambda: router.metric("core_router_sequences") == 1)
    end = inputs(2.0, sequence_id=5, sequence_end=True)
    assert outputs(ask(router.port, INFER.format("sums"), end))[0] == 3


def test_another_router_continues_a_sequence(router, route, three):
    other = route([each.name for each in three])
    start = inputs(1.0, sequence_id="shared", sequence_start=True)
    end = inputs(2.0, sequence_id="shared", sequence_end=True)

    _, first = outputs(ask(router.port, INFER.format("sums"), start))

    assert outputs(ask(other.port, INFER.format("sums"), end)) == [3, first]


def test_the_index_is_that_of_all_servers(router):
    found = ask(router.port, "/v2/repository/index", {}).json

    names = [each["name"] for each in found]
    assert {"who", "only_0", "only_1", "only_2"} <= set(names)
    assert len(names) == len(set(names))
    assert all(each["state"] == "READY" for each in found)


def test_the_statistics_are_sums(router, three):
    before = ask(router.port, "/v2/models/who/stats").json["model_stats"][0]["inference_count"]
    for _ in range(30):
        who(router.port)

    (found,) = ask(router.port, "/v2/models/who/stats").json["model_stats"]

    assert found["inference_count"] == before + 30
    ports = [int(each.name.partition(":")[2]) for each in three]
    each = [ask(port, "/v2/models/who/stats").json["model_stats"][0] for port in ports]
    assert found["last_inference"] == max(one["last_inference"] for one in each)


def test_a_setting_reaches_all_servers(router, three):
    reply = ask(router.port, "/v2/logging", {"log_verbose_level": 1})
    assert (reply.status, reply.json["log_verbose_level"]) == (200, 1)

    for each in three:
        port = int(each.name.partition(":")[2])
        assert ask(port, "/v2/logging").json["log_verbose_level"] == 1
    ask(router.port, "/v2/logging", {"log_verbose_level": 0})


def test_an_operation_that_fails_says_where(router, three):
    reply = ask(router.port, "/v2/repository/models/unknown/load", {})

    assert reply.status >= 400
    for each in three:
        assert each.name in reply.json["error"]


def test_a_model_can_be_used_as_soon_as_it_is_there(router, three):
    x = {"inputs": {"x": ("FP32", [-1])}, "outputs": {"y": ("FP32", [-1])}}
    three[1].server.bind("new", lambda x: {"y": x + 1}, **x)
    try:
        assert outputs(ask(router.port, INFER.format("new"), inputs(1.0))) == [2]
    finally:
        three[1].server.unbind("new")


def test_a_drained_server_ends_its_sequences_and_begins_nothing(router, three):
    start = inputs(1.0, sequence_id=77, sequence_start=True)
    _, number = outputs(ask(router.port, INFER.format("sums"), start))
    name = three[int(number)].name

    row = ask(router.admin, f"/servers/{name}/drain", b"").json

    assert (row["drained"], row["sequences"]) == (True, 1)
    assert number not in {who(router.port) for _ in range(40)}
    end = inputs(2.0, sequence_id=77, sequence_end=True)
    assert outputs(ask(router.port, INFER.format("sums"), end)) == [3, number]
    assert router.metric("core_router_server_ready", server=name) == 0
    assert not ask(router.admin, f"/servers/{name}/resume", b"").json["drained"]
    assert number in {who(router.port) for _ in range(60)}


def test_an_unknown_server_cannot_be_drained(router, three):
    reply = ask(router.admin, "/servers/other:1/drain", b"")

    assert reply.status == 404
    assert three[0].name in reply.json["error"]


def test_requests_in_flight_are_answered_before_the_end(router, three):
    for each in three:
        each.gate.clear()
    found = []
    waiting = threading.Thread(target=lambda: found.append(who(router.port, "gated")))
    waiting.start()
    until(lambda: router.metric("core_router_in_flight", model="gated") == 1)

    drained = router.drain()
    until(lambda: ask_or_none(router.port) is None)
    for each in three:
        each.gate.set()
    waiting.join(PATIENCE_S)

    assert found[0] in (0, 1, 2)
    drained.result(PATIENCE_S)


def ask_or_none(port):
    try:
        return ask(port, "/v2/health/live")
    except OSError:
        return None


def test_metrics_say_what_each_server_has_done(router, three):
    for _ in range(20):
        who(router.port, "only_2")

    labels = {"server": three[2].name, "model": "only_2"}
    assert router.metric("core_router_responses", **labels, status="2xx") == 20
    assert router.metric("core_router_response_seconds_count", **labels) == 20
    assert router.metric("core_router_in_flight") == 0
    families = list(text_string_to_metric_families(ask(router.admin, "/metrics").body.decode()))
    assert {each.type for each in families} == {"counter", "gauge", "histogram"}
    rows = router.servers()
    assert rows[three[2].name]["models"]["only_2"]["mean_ms"] > 0
    assert {each["state"] for each in rows.values()} == {"ready"}


class Changing(AddressSource):
    """A source whose addresses a test changes."""

    def __init__(self, *addresses):
        self.now = list(addresses)

    async def addresses(self):
        if not self.now:
            raise OSError("the name server is away")
        return self.now


def test_servers_come_and_go_with_their_addresses(route, three):
    port = int(three[0].name.partition(":")[2])
    other = int(three[1].name.partition(":")[2])
    first, second = Address("127.0.0.1", port), Address("127.0.0.1", other)
    source = Changing(first)
    router = route([], sources=[source])

    source.now.append(second)
    until(lambda: router.servers().get(str(second), {}).get("state") == "ready")
    source.now.remove(first)
    until(lambda: list(router.servers()) == [str(second)])
    assert who(router.port) == 1
    source.now.clear()
    assert who(router.port) == 1


def test_counts_of_a_server_go_on_when_it_comes_back(route, three):
    """A sum over all servers neither falls when one leaves, nor when it is there again."""
    first, second = (Address("127.0.0.1", int(each.name.partition(":")[2])) for each in three[:2])
    source = Changing(first)
    router = route([], sources=[source])

    def responses(server):
        return router.metric("core_router_responses", server=str(server), model="who")

    def moves_to(server):
        source.now = [server]
        until(
            lambda: (
                {each["name"]: each["state"] for each in router.servers().values()}
                == {str(server): "ready"}
            )
        )
        who(router.port)

    who(router.port)
    moves_to(second)
    assert (responses(first), responses(second)) == (1, 1)

    moves_to(first)
    assert (responses(first), responses(second)) == (2, 1)
    assert router.metric("core_router_response_seconds_count", model="who") == 3


def test_counts_of_a_model_go_on_when_it_is_loaded_again(route, scripted):
    server = scripted(good)
    router = route([server.name])
    infer = "/v2/models/m/infer"
    ask(router.port, infer, inputs(1.0))

    index, server.index = server.index, []
    until(lambda: not router.servers()[server.name]["models"])
    assert router.metric("core_router_responses", model="m") == 1
    server.index = index
    until(lambda: router.servers()[server.name]["models"])
    ask(router.port, infer, inputs(1.0))

    assert router.metric("core_router_responses", model="m") == 2


def test_a_name_of_dns_stands_for_its_addresses(thread):
    (source,) = read_servers("dns://localhost:8000")

    assert Address("127.0.0.1", 8000, 8001, 8002) in thread.run(source.addresses())


@pytest.mark.parametrize("path", ["/v2/health/ready", "/v2/health/live"])
def test_the_routers_own_health(router, route, path):
    assert ask(router.port, path).status == 200
    alone = route(["127.0.0.1:9"])
    assert ask(alone.port, path).status == (200 if path.endswith("live") else 503)


def test_without_a_server_the_error_says_what_is_wrong(route):
    reply = ask(route(["127.0.0.1:9"]).port, INFER.format("m"), inputs(1.0))

    assert reply.status == 503
    assert "127.0.0.1:9: down (" in reply.json["error"]
    assert "model 'm'" in reply.json["error"]
    assert reply.headers["Retry-After"] == "1"


def test_many_clients_at_once(router):
    async def client(count):
        reader, writer = await asyncio.open_connection("127.0.0.1", router.port)
        body = json.dumps(inputs(5.0)).encode()
        for _ in range(count):
            writer.write(
                b"POST /v2/models/who/infer HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%b"
                % (len(body), body)
            )
            head = await reader.readuntil(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 200")
            size = int(head.lower().partition(b"content-length:")[2].split()[0])
            assert json.loads(await reader.readexactly(size))["outputs"][0]["data"][0] == 5
        writer.close()

    async def all_of_them():
        await asyncio.gather(*[client(20) for _ in range(50)])

    asyncio.run(all_of_them())
    assert router.metric("core_router_in_flight") == 0
    assert router.metric("core_router_lost") == 0
