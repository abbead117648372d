"""docs/operate/security.md as a person follows it, and files that are read again on SIGHUP."""

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from frontends.shared.access.tokens import line_of

PAGE = Path(__file__).parents[2] / "docs" / "operate" / "security.md"


def free_ports(count):
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


class Running:
    """core-serve, with its log as it comes."""

    def __init__(self, folder, *arguments):
        (folder / "models").mkdir(exist_ok=True)
        self.http, self.grpc, self.metrics = free_ports(3)
        ports = [f"--{name}-port={getattr(self, name)}" for name in ("http", "grpc", "metrics")]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "core.serve", *arguments, *ports],
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )
        self.log = ""
        self._news = threading.Condition()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self):
        for line in self.process.stdout:
            with self._news:
                self.log += line
                self._news.notify_all()
        with self._news:
            self._news.notify_all()

    def until(self, text, times=1):
        """Wait until the log has it so often."""
        with self._news:
            there = self._news.wait_for(
                lambda: self.log.count(text) >= times or self.process.poll() is not None, 60
            )
        assert there and self.log.count(text) >= times, self.log

    def ask(self, token):
        """Status of GET /v2."""
        with socket.create_connection(("127.0.0.1", self.http), 20) as client:
            client.sendall(
                f"GET /v2 HTTP/1.1\r\nHost: x\r\nConnection: close\r\nX-Api-Key: {token}\r\n\r\n".encode()
            )
            return int(client.makefile("rb").readline().split()[1])

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        status = self.process.wait(60)
        self._reader.join()
        return status


@pytest.fixture
def run(tmp_path):
    started = []

    def start(*arguments):
        started.append(Running(tmp_path, *arguments))
        return started[-1]

    yield start
    for each in started:
        if each.process.poll() is None:
            each.end()


def test_the_commands_of_the_page_work_as_described(tmp_path, run):
    section = PAGE.read_text().partition("## In two minutes")[2].partition("tritonclient sends")[0]
    blocks = re.findall(r"```(\w+)\n(.*?)```", section, re.DOTALL)
    tokens, serve, answered, *refused = [(kind, text) for kind, text in blocks]

    def shell(text):
        text = text.replace("localhost:8000", f"localhost:{server.http}" if server else "")
        text = text.replace("localhost:8002", f"localhost:{server.metrics}" if server else "")
        programs = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        done = subprocess.run(
            ["bash", "-ec", text],
            cwd=tmp_path,
            env={**os.environ, "PATH": programs},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    server = None
    shell(tokens[1])
    server = run(*serve[1].split()[1:])
    server.until("Started Metrics Service")
    server.until("Started GRPCInferenceService")

    both = shell(answered[1])
    assert '"extensions"' in both and "core_request_memory_refusals" in both
    assert [kind for kind, _ in refused] == ["bash", "json", "bash", "json"]
    for command, answer in zip(refused[::2], refused[1::2], strict=True):
        assert shell(command[1]) == answer[1].strip()
    assert "--secure: HTTP is for this machine only; --http-address says otherwise" in (
        server.log.replace("\\", "")
    )
    for name in ("alice", "prometheus"):
        assert (tmp_path / f"{name}.token").read_text().strip() not in server.log
    assert server.end() == 0


@pytest.mark.parametrize("workers", [1, 2])
def test_sighup_makes_every_process_read_its_files_again(tmp_path, run, workers):
    tokens = tmp_path / "tokens"
    tokens.write_text(line_of("a", ["read"], "old"))
    server = run(
        "--model-repository=models",
        "--http-address=127.0.0.1",
        "--allow-grpc=false",
        "--allow-metrics=false",
        f"--workers={workers}",
        f"--auth-tokens={tokens}",
        "--reload-secs=0",
    )
    server.until("Started HTTPService", workers)
    if workers > 1:
        server.until("all 2 workers are up")
    assert [server.ask("old"), server.ask("new")] == [200, 401]

    tokens.write_text(line_of("a", ["read"], "new"))
    server.process.send_signal(signal.SIGHUP)
    server.until("--auth-tokens: read again", workers)

    assert [server.ask("old"), server.ask("new")] == [401, 200]
    assert server.end() == 0


def test_a_server_without_such_files_ends_with_sighup(run):
    server = run("--model-repository=models", "--http-address=127.0.0.1", "--allow-grpc=false")
    server.until("Started HTTPService")

    server.process.send_signal(signal.SIGHUP)

    assert server.process.wait(60) == -signal.SIGHUP


def test_a_start_without_known_callers_fails_with_advice(run):
    server = run("--secure", "--model-repository=models")

    assert server.process.wait(60) == 1
    server._reader.join()
    assert "creating server: Invalid argument - --secure needs to know who calls" in server.log


def test_a_file_of_tokens_that_is_none_ends_the_start(tmp_path, run):
    (tmp_path / "tokens").write_text("alice\n")
    server = run("--model-repository=models", "--auth-tokens=tokens")

    assert server.process.wait(60) == 1
    server._reader.join()
    assert "Invalid argument - tokens:1: expected <name> <role>" in server.log
