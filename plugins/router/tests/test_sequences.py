"""How many sequences the router keeps, and when it forgets them."""

import json
import random

import pytest
from core_router.choice import sequences as module
from core_router.choice.sequences import IDLE_S, SequenceParameters, Sequences
from core_router.servers.server import Address, Server, State
from core_router.servers.server_model import ServerModel
from routing.requests import ask, inputs, until
from routing.running import reset, said
from routing.tables import Table

INFER = "/v2/models/m/infer"
SEQUENTIAL = {"sequence_batching": {}}


def server_model(port=1):
    return ServerModel(Server(Address("host", port)), "m")


def test_sequences_of_models_that_declare_them_have_a_bound(monkeypatch):
    monkeypatch.setattr(module, "_MOST", 3)
    sequences, found = Sequences(), server_model()
    for key in (1, 2, 3):
        sequences.begin("m", key, found, 0.0)
    assert sequences.find("m", 1, 0.0) is found
    sequences.begin("m", 4, found, 0.0)

    assert [sequences.find("m", key, 0.0) for key in (1, 2, 3, 4)] == [found, None, found, found]
    assert len(sequences) == sequences.by_server()[found.server.name] == 3


def test_a_forgotten_sequence_goes_on_where_it_was(monkeypatch):
    monkeypatch.setattr(module, "_MOST", 1)
    table = Table(**{name: (State.READY, {"m": "1"}) for name in "abcd"})
    for server in table.table.servers.values():
        server.models["m"].is_stateful = True
    route, sequences = table.route("m"), Sequences()

    first = [
        sequences.choose(route, SequenceParameters(key, True, False), (), 0.0) for key in range(50)
    ]
    later = [
        sequences.choose(route, SequenceParameters(key, False, False), (), 0.0) for key in range(50)
    ]

    assert first == later and len(set(first)) > 1


def test_many_old_sequences_are_forgotten_little_by_little(monkeypatch):
    monkeypatch.setattr(module, "_MOST_FORGOTTEN", 10)
    sequences, found = Sequences(), server_model()
    for key in range(25):
        sequences.begin("m", key, found, 0.0)

    counts = []
    for _ in range(4):
        sequences.expire(1.0)
        counts.append(len(sequences))
    assert counts == [15, 5, 0, 0]


def test_a_sequence_that_comes_makes_room_of_old_ones():
    sequences, found = Sequences(), server_model()
    for key in range(100):
        sequences.begin("m", key, found, 0.0)
    for key in range(100, 150):
        sequences.begin("m", key, found, IDLE_S + 1)

    assert len(sequences) == 50


def test_a_sequence_in_use_is_not_forgotten():
    sequences, found = Sequences(), server_model()
    for key in range(4):
        sequences.begin("m", key, found, 0.0)
    for now_s in (1.0, 2.0):
        sequences.find("m", 0, now_s)
    sequences.expire(2.0)

    assert len(sequences) == 1
    assert sequences.find("m", 0, 2.0) is found


def test_a_failure_leaves_the_order_in_which_sequences_are_forgotten():
    table = Table(a=(State.READY, {"m": "1"}))
    route, sequences = table.route("m"), Sequences()
    for key in (1, 2):
        sequences.choose(route, SequenceParameters(key, True, False), (), float(key))

    assert sequences.failure(route, SequenceParameters(1, False, False))
    sequences.expire(1.5)

    assert len(sequences) == 1


def test_the_counts_are_those_of_the_sequences():
    """After any begins, ends and ends of servers."""
    draw, sequences = random.Random(1), Sequences()
    servers = [server_model(port) for port in range(1, 4)]
    for step in range(1000):
        key, found = draw.randrange(100), draw.choice(servers)
        kind = draw.randrange(10)
        if kind < 6:
            sequences.begin("m", key, found, float(step))
        elif kind < 9:
            sequences.end("m", key)
        elif draw.random() < 0.1:
            found.server.downs += 1
        sequences.expire(step - 200.0)
        pins = [*sequences._pins.values(), *sequences._undeclared.values()]
        opened = [each.server_model.server.name for each in pins if each.is_open]
        assert len(sequences) == len(opened)
        assert sequences.by_server() == {name: opened.count(name) for name in opened}
    for key in range(100):
        sequences.end("m", key)
    assert not sequences._counts


@pytest.mark.parametrize("declared", [True, False])
@pytest.mark.parametrize("port", ["port", "admin"])
def test_a_start_that_a_server_refuses_begins_no_sequence(scripted, route, declared, port):
    if port == "admin":
        pytest.importorskip("core_console", reason="core-web-console is not installed")

    async def refuse_starts(reader, writer, line, body):
        writer.write(said(b"{}", 400 if b'"sequence_start": true' in body else 200))

    server = scripted(refuse_starts)
    server.config = SEQUENTIAL if declared else {}
    router = route([server.name])
    until(lambda: router.router.table.servers[server.name].models)

    def send(**parameters):
        return ask(getattr(router, port), INFER, inputs(1.0, sequence_id=7, **parameters)).status

    assert send() == 200
    assert router.metric("core_router_sequences") == 1
    assert send(sequence_start=True) == 400
    assert router.metric("core_router_sequences") == 0


def test_a_start_whose_response_breaks_begins_no_sequence(scripted, route, raw):
    async def half(reader, writer, line, body):
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc")
        await writer.drain()
        writer.close()

    router = route([scripted(half).name])
    body = json.dumps(inputs(1.0, sequence_id=7, sequence_start=True)).encode()
    client = raw(router.port)
    client.send(b"POST %b HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % (INFER.encode(), len(body)))
    client.send(body)
    with pytest.raises(ConnectionResetError):
        client.receive()

    assert router.metric("core_router_sequences") == 0


def test_a_start_that_is_lost_begins_no_sequence(scripted, route):
    router = route([scripted(reset).name])

    assert ask(router.port, INFER, inputs(1.0, sequence_id=7, sequence_start=True)).status == 502
    assert router.metric("core_router_sequences") == 0
    assert ask(router.port, INFER, inputs(1.0, sequence_id=7, sequence_end=True)).status == 502
    assert router.metric("core_router_sequences") == 1  # its server may have the sequence still
