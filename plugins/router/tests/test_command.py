"""The program `core router`, as a person starts and ends it, before servers that are processes."""

import os
import re
import signal
import socket
import struct
import subprocess
import sys
import textwrap
import threading
from importlib.util import find_spec
from pathlib import Path

import pytest
from routing.grpc_servers import Calls
from routing.requests import PATIENCE_S, ask, inputs, outputs, until

from core.plugins.commands import run_command

SERVER = """
    import os, sys, core
    with core.Server() as server:
        x = ("FP32", [-1])
        server.bind("m", lambda x: {"y": x + 1}, inputs={"x": x}, outputs={"y": x})
        ports = server.serve(http_port=0, grpc_port=0)
        print(ports["http"], ports["grpc"], flush=True)
        sys.stdin.read()
"""


# SIGINT reaches the program: a shell that starts the tests in the background has it ignored. It is no
# preexec_fn: this process has threads of gRPC, with which a fork may fail.
_INTERRUPTIBLE = (
    sys.executable,
    "-c",
    "import os, signal, sys\nsignal.signal(signal.SIGINT, signal.SIG_DFL)\n"
    "os.execvp(sys.argv[1], sys.argv[1:])",
)
START_S = 90  # of a process, on a busy machine


class Program:
    """A process whose lines of output are kept."""

    def __init__(self, *command):
        self._process = subprocess.Popen(
            [*_INTERRUPTIBLE, sys.executable, *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.lines = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        for line in self._process.stdout:
            self.lines.append(line.rstrip())

    def says(self, pattern):
        """Wait for a line; return its match."""
        return until(
            lambda: next(filter(None, (re.search(pattern, each) for each in self.lines)), None),
            START_S,
        )

    def send(self, number):
        os.kill(self._process.pid, number)

    def end(self):
        """Wait for the end; return the exit status."""
        self._process.stdin.close()
        status = self._process.wait(PATIENCE_S)
        self._reader.join(PATIENCE_S)
        return status

    def close(self):
        if self._process.poll() is None:
            self._process.kill()
        self.end()


@pytest.fixture
def program():
    found = []

    def start(*command):
        found.append(Program(*command))
        return found[-1]

    yield start
    for each in found:
        each.close()


def router(start, *options):
    ports = [f"--{name}-port=0" for name in ("http", "grpc", "admin")]
    return start("-m", "core", "router", *ports, *options)


def test_a_server_is_killed_and_no_request_is_lost(program):
    servers = [program("-c", textwrap.dedent(SERVER)) for _ in range(2)]
    addresses = [":".join(("localhost", *each.says(r"^(\d+) (\d+)$").groups())) for each in servers]
    started = router(program, f"--servers={','.join(addresses)}")
    said = started.says(
        r"router at http://0\.0\.0\.0:(\d+) for clients,(?: 0\.0\.0\.0:(\d+) for gRPC,)?"
    )
    port = int(said[1])
    stop, answers = threading.Event(), []
    calls = Calls(said[2])

    def client(number):
        while not stop.is_set():
            answers.append((outputs(ask(port, "/v2/models/m/infer", inputs(number))), [number + 1]))

    def grpc_client(number):
        while not stop.is_set():
            found = calls.infer("m", number).raw_output_contents[0]
            answers.append(([struct.unpack("f", found)[0]], [number + 1]))

    clients = [
        threading.Thread(target=target, args=(float(number),))
        for number in range(3)
        for target in (client, *([grpc_client] if said[2] else ()))
    ]
    for each in clients:
        each.start()
    until(lambda: len(answers) > 50)
    servers[0].send(signal.SIGKILL)
    before = len(answers)
    until(lambda: len(answers) > before + 50)
    stop.set()
    for each in clients:
        each.join(PATIENCE_S)

    calls.close()
    assert all(found == expected for found, expected in answers)
    assert all(not each.is_alive() for each in clients)
    until(lambda: len([each for each in started.lines if "is down: " in each]) == 1)
    started.send(signal.SIGINT)
    assert started.end() == 0
    assert "requests in flight are answered" in started.lines[-1]


def test_it_starts_without_its_servers_and_ends_at_once_without_clients(program):
    started = router(program, "--servers=localhost:9")
    started.says(r"server localhost:9 is down: ")
    started.says("for clients")
    started.send(signal.SIGTERM)

    assert started.end() == 0


@pytest.mark.parametrize(
    ("options", "status", "text"),
    [
        ([], 2, "--servers"),
        (["--servers=a:b"], 1, "'a:b' is no server; write host:port"),
        (["--servers=a:1:70000"], 1, "'a:1:70000' is no server; write host:port"),
        (["--servers=dns://a..b"], 1, "'dns://a..b' has 'a..b' as its host, which is no name"),
        ([f"--servers={'a' * 64}:1"], 1, "as its host, which is no name"),
        (["--servers="], 1, "--servers names no server"),
        (["--servers=a", "--retries=-1"], 2, "invalid number value: '-1'"),
        (["--servers=a", "--share=a=200"], 1, "the share of server a for model '*' is 200.0"),
        (["--servers=a", "--hedge-quantile=95"], 2, "invalid number from 0 to 1, value: '95'"),
        (["--servers=a", "--check-secs=soon"], 2, "invalid seconds value: 'soon'"),
        (["--servers=a", "--token-file=/nowhere"], 1, "--token-file '/nowhere' cannot be read"),
    ],
)
def test_wrong_options_are_errors(capsys, options, status, text):
    try:
        found = run_command("router", options)
    except SystemExit as error:
        found = error.code

    assert found == status
    assert text in capsys.readouterr().err


@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_a_port_that_is_in_use_is_an_error(capsys, protocol):
    if protocol == "grpc" and find_spec("core_router.grpc.native.link") is None:
        pytest.skip("compiled without libnghttp2")
    with socket.create_server(("127.0.0.1", 0)) as used:
        port = used.getsockname()[1]
        options = ["--servers=localhost:9", "--http-address=127.0.0.1", "--http-port=0"]
        assert run_command("router", [*options, f"--{protocol}-port={port}"]) == 1

    error = capsys.readouterr().err
    assert f"cannot listen on 127.0.0.1:{port}" in error
    assert f"choose another port with --{protocol}-port" in error


def test_the_example_goes_on_without_a_server():
    program = Path(__file__).parents[3] / "examples" / "router.py"
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, timeout=120)

    assert done.returncode == 0, done.stderr
    before, after = done.stdout.splitlines()
    assert before.startswith("200 requests, answered by servers [0, ")
    assert re.fullmatch(r"200 requests, answered by servers \[[12, ]+\]", after)
