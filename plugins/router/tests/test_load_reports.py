"""Load reports: how long requests wait at a server, whoever has sent them."""

import threading

import pytest
from core_router.choice.choose import choose
from core_router.servers.addresses import read_servers
from core_router.servers.load_reports import waits_of
from core_router.servers.server import Address, Server
from core_router.servers.server_model import ServerModel
from routing.requests import ask, inputs, outputs, until
from routing.running import good

INFER = "/v2/models/{}/infer"
WAIT = "core_inference_wait_estimate_seconds"


def test_the_wait_of_a_model_is_the_longest_of_its_versions():
    text = f"""
# HELP {WAIT} Estimated queue time
# TYPE {WAIT} gauge
{WAIT}{{model="m",version="1"}} 0.25
{WAIT}{{model="m",version="2"}} 1.5
{WAIT}{{model="m",version="3"}} 0
{WAIT}{{version="1",model="a \\"b\\" }}\\n\\\\"}} 3e-05
other{{model="m",version="1"}} 9
{WAIT}_other{{model="m",version="1"}} 9
"""
    assert waits_of(text.encode()) == {"m": 1.5, 'a "b" }\n\\': 3e-05}
    assert waits_of(b"") == {}


def two():
    return tuple(ServerModel(Server(Address("host", 8000 + i)), "m") for i in range(2))


def take(found, seconds):
    found.begin()
    found.done(200, seconds, 0.0)


def test_the_server_where_others_wait_longer_gets_no_request():
    first, second = of = two()
    for each in of:
        take(each, 0.01)
    first.report(0.5, 10.0)
    second.report(0.02, 10.0)

    assert {choose(of, (), 9.9) for _ in range(50)} == {second}
    assert {choose(of, (), 10.0) for _ in range(50)} == set(of)  # the reports are too old


def test_requests_of_this_router_are_not_counted_twice():
    (found, _) = two()
    take(found, 0.1)
    for _ in range(3):
        found.begin()

    found.report(0.3, 10.0)

    assert found.wait_s == 0
    assert found.cost(1.0) == pytest.approx(0.4)


def test_a_router_sees_requests_that_others_have_sent(route, three):
    busy, idle, _ = three
    router = route([busy.reporting, idle.reporting])
    busy.gate.clear()
    threading.Timer(0.1, busy.gate.set).start()
    ask(busy.port, INFER.format("gated"), inputs(1.0))  # the estimate needs a past
    busy.gate.clear()
    others = [
        threading.Thread(target=ask, args=(busy.port, INFER.format("gated"), inputs(1.0)))
        for _ in range(12)
    ]
    for each in others:
        each.start()

    until(lambda: router.servers()[busy.name]["models"]["gated"]["wait_ms"] > 0)
    found = {outputs(ask(router.port, INFER.format("gated"), inputs(1.0)))[-1] for _ in range(20)}

    busy.gate.set()
    for each in others:
        each.join()
    assert found == {idle.number}
    assert router.metric("core_router_wait_seconds", server=idle.name, model="gated") == 0


def test_a_server_whose_metrics_cannot_be_read_has_no_reports(route, scripted, caplog):
    found = scripted(good)
    found.metrics = f'{WAIT}{{model="m",version="1"}} 0.25\n'.encode()
    router = route([f"{found.name}:1:{found.name.rpartition(':')[2]}"])
    until(lambda: router.servers()[found.name]["models"]["m"]["wait_ms"] == 250)
    assert router.servers()[found.name]["reports"] is True

    found.metrics = b""

    until(lambda: not router.servers()[found.name]["reports"])
    assert router.servers()[found.name]["state"] == "ready"
    assert "/metrics: status 404" in caplog.text
    assert ask(router.port, INFER.format("m"), inputs(1.0)).status == 200


@pytest.mark.parametrize(
    ("text", "port"),
    [
        ("a", 8002),
        ("a:8000:8001", 8002),
        ("a:9000", 0),
        ("a:8000:9001", 0),
        ("a:8000:8001:9", 9),
        ("a:9000:9001:9002", 9002),
        ("a:9000:9001:0", 0),
    ],
)
def test_only_a_server_with_the_usual_ports_has_the_usual_port_of_metrics(thread, text, port):
    (source,) = read_servers(text)

    (found,) = thread.run(source.addresses())
    assert found.metrics_port == port
