"""Servers of core that tell a router of loads and unloads, and others that the router has to ask."""

import json
import re
import signal
import socket
import subprocess
import sys
import time
from contextlib import ExitStack

import pytest
from core_router.servers.announcements import models_of
from routing.requests import PATIENCE_S, ask, until
from routing.running import good
from routing.tokens import file_of_tokens

import core

CONFIG = """
backend: "identity"
input { name: "INPUT0" data_type: TYPE_FP32 dims: [ -1 ] }
output { name: "OUTPUT0" data_type: TYPE_FP32 dims: [ -1 ] }
"""
DECOUPLED = "model_transaction_policy { decoupled: true }\n"
RARELY_S = 300.0  # between two checks: what is seen earlier was announced


@pytest.fixture
def repository(tmp_path):
    for name in ("m", "n"):
        (tmp_path / name / "1").mkdir(parents=True)
        (tmp_path / name / "config.pbtxt").write_text(CONFIG)
    return tmp_path


@pytest.fixture
def serve(repository):
    """Start servers of core without a loaded model; return the port for HTTP of each."""
    with ExitStack() as opened:

        def start(**more):
            server = core.Server(
                model_repository=[str(repository)], model_control_mode="explicit", **more
            )
            opened.callback(server.stop)
            server.start()
            return server.serve(http_port=0)["http"]

        yield start


def load(port, name, action="load"):
    assert ask(port, f"/v2/repository/models/{name}/{action}", {}).status == 200


def announced(router, port):
    return router.servers()[f"127.0.0.1:{port}"]["announces"]


def models(router, port):
    """Return what the router knows, without a question to it."""
    found = router.router.table.servers[f"127.0.0.1:{port}"].models
    return {name for name, each in found.items() if each.versions}


def test_a_router_sees_loads_and_unloads_of_two_servers_without_a_check(serve, route):
    one, other = serve(), serve()
    router = route([f"127.0.0.1:{one}", f"127.0.0.1:{other}"], check_s=RARELY_S)
    until(lambda: announced(router, one) and announced(router, other))

    load(one, "m")
    until(lambda: models(router, one) == {"m"})
    assert models(router, other) == set()
    load(other, "n")
    until(lambda: models(router, other) == {"n"})
    load(one, "m", "unload")
    until(lambda: models(router, one) == set())


def test_a_configuration_that_a_reload_has_changed_is_read_at_once(serve, route, repository):
    port = serve()
    router = route([f"127.0.0.1:{port}"], check_s=RARELY_S)
    until(lambda: announced(router, port))
    load(port, "m")
    until(lambda: models(router, port) == {"m"})
    found = router.router.table.servers[f"127.0.0.1:{port}"].models["m"]
    assert not found.is_decoupled

    (repository / "m" / "config.pbtxt").write_text(CONFIG + DECOUPLED)
    load(port, "m")

    until(lambda: found.is_decoupled)


def test_a_change_while_a_check_runs_is_not_missed(serve, route):
    port = serve()
    router = route([f"127.0.0.1:{port}"], check_s=RARELY_S)
    until(lambda: announced(router, port))

    for action in ("load", "unload") * 4:
        load(port, "m", action)
        until(lambda wanted={"m"} if action == "load" else set(): models(router, port) == wanted)


def test_a_server_with_a_reader_ends_soon(serve, route, repository):
    server = core.Server(model_repository=[str(repository)], model_control_mode="explicit")
    port = server.start().serve(http_port=0)["http"]
    router = route([f"127.0.0.1:{port}"], check_s=0.2)
    until(lambda: announced(router, port))

    began = time.monotonic()
    server.stop()

    assert time.monotonic() - began < server.options.exit_timeout_secs
    until(lambda: not announced(router, port))


def test_the_announcements_of_a_server_that_is_back_are_read_again(repository, route):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    router = route([f"127.0.0.1:{port}"], check_s=0.2)
    for _ in range(2):
        server = core.Server(model_repository=[str(repository)], model_control_mode="explicit")
        server.start().serve(http_port=port)
        until(lambda: announced(router, port))
        server.stop()
        until(lambda: not announced(router, port))


def test_a_server_without_announcements_is_checked_as_before(scripted, route):
    server = scripted(good)
    router = route([server.name], check_s=0.1)
    known = router.router.table.servers[server.name]

    server.index = [{"name": "later", "version": "1", "state": "READY"}]

    until(lambda: "later" in known.models)
    assert router.servers()[server.name]["announces"] is False


def test_announcements_need_the_token_of_the_index(serve, route, tmp_path):
    tokens = tmp_path / "tokens.txt"
    tokens.write_text(file_of_tokens())
    port = serve(auth_tokens=str(tokens))

    assert ask(port, "/v2/repository/changes").status == 401
    headers = {"Authorization": "Bearer token-ben"}
    router = route([f"127.0.0.1:{port}"], check_s=RARELY_S, headers=headers)
    until(lambda: announced(router, port))


def test_a_change_in_one_worker_reaches_the_router_of_another(repository, route):
    command = [sys.executable, "-m", "core.serve", f"--model-repository={repository}"]
    command += ["--model-control-mode=explicit", "--workers=2", "--allow-metrics=false"]
    command += ["--http-address=127.0.0.1", "--http-port=0", "--allow-grpc=false"]
    server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        port = next(
            int(found[1])
            for line in server.stderr
            if (found := re.search(r"HTTPService at [^ ]*?:(\d+)", line))
        )
        until(lambda: ask(port, "/v2/health/ready").status == 200, 60)
        routers = [route([f"127.0.0.1:{port}"], check_s=RARELY_S) for _ in range(4)]
        until(lambda: all(announced(each, port) for each in routers))

        load(port, "m")
        until(lambda: all(models(each, port) == {"m"} for each in routers))
        load(port, "m", "unload")
        until(lambda: all(models(each, port) == set() for each in routers))
    finally:
        server.send_signal(signal.SIGTERM)
        server.stderr.close()
        server.wait(PATIENCE_S * 3)


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (b'{"models": ["a", "b"]}', ["a", "b"]),
        (b' {"models": []}\n', []),
        (b'{"models": [1, "a", null]}', ["a"]),
        (b'{"models": 5}', []),
        (b"[]", []),
        (b"{", []),
    ],
)
def test_models_of_an_event(data, found):
    assert models_of(data) == found


def test_the_models_of_an_event_are_names(serve):
    port = serve()
    with socket.create_connection(("127.0.0.1", port), PATIENCE_S) as client:
        client.sendall(b"GET /v2/repository/changes HTTP/1.1\r\nHost: x\r\n\r\n")
        lines = (each.decode() for each in client.makefile("rb"))
        first = next(each for each in lines if each.startswith("data: "))
        load(port, "m")
        second = next(each for each in lines if each.startswith("data: "))

    assert json.loads(first[6:]) == {"models": []}
    assert json.loads(second[6:]) == {"models": ["m"]}
