"""The server as a process: its exit status, its log, what signals do."""

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request

import pytest

SLOW_TO_LOAD = """
import time
import core

class Slow(core.Model):
    def load(self):
        print("loading now", flush=True)
        time.sleep(30)

backend = core.Backend(instance=core.ModelInstance, model=Slow)
"""


class Process:
    """A server that only serves metrics, on a free port, with its log read line by line."""

    def __init__(self, *arguments, path=""):
        environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
        if path:
            environment["PYTHONPATH"] = path
        self._process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "core.serve",
                "--allow-http=false",
                "--allow-grpc=false",
                "--metrics-address=127.0.0.1",
                "--metrics-port=0",
                *arguments,
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=environment,
        )
        self.lines = []

    def until(self, text):
        """Read on until a line holds the text; that line."""
        for line in self._process.stdout:
            self.lines.append(line)
            if text in line:
                return line
        raise AssertionError(f"the server ended without '{text}':\n{''.join(self.lines)}")

    def signal(self, number):
        self._process.send_signal(number)

    def end(self):
        """Wait for the end: (exit status, the whole log)."""
        self.lines += self._process.stdout
        return self._process.wait(30), "".join(self.lines)

    def kill(self):
        if self._process.poll() is None:
            self._process.kill()
        self._process.stdout.close()
        self._process.wait()


@pytest.fixture
def run():
    started = []

    def start(*arguments, **more):
        started.append(Process(*arguments, **more))
        return started[-1]

    yield start
    for process in started:
        process.kill()


@pytest.fixture
def slow_backend(tmp_path):
    """A backend whose models take half a minute to load, and a repository with one of them."""
    site = tmp_path / "site"
    (site / "backend_slow-1.0.dist-info").mkdir(parents=True)
    (site / "backend_slow-1.0.dist-info" / "METADATA").write_text(
        "Name: backend-slow\nVersion: 1.0\n"
    )
    (site / "backend_slow-1.0.dist-info" / "entry_points.txt").write_text(
        "[core.backends]\nslow = backend_slow:backend\n"
    )
    (site / "backend_slow.py").write_text(SLOW_TO_LOAD)
    model = tmp_path / "models" / "m"
    (model / "1").mkdir(parents=True)
    (model / "config.pbtxt").write_text('backend: "slow"\n')
    return str(site), f"--model-repository={tmp_path / 'models'}"


def test_help_is_shown_on_stderr_with_status_1():
    done = subprocess.run(
        [sys.executable, "-m", "core.serve", "--help"], capture_output=True, text=True, check=False
    )

    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.startswith("Usage: core-serve [options]\n")


def test_a_wrong_flag_ends_with_the_reason_as_the_last_line(run):
    status, log = run("--no-such-flag=1").end()

    assert status == 1
    assert log.splitlines()[-1] == "unrecognized option '--no-such-flag=1'"


def test_without_a_repository_no_server_is_created(run):
    status, log = run().end()

    assert status == 1
    assert (
        log.splitlines()[-1]
        == "error: creating server: Invalid argument - --model-repository must be specified"
    )


def test_a_repository_that_is_not_there_ends_the_start(run):
    status, log = run("--model-repository=/no/such/folder").end()

    assert status == 1
    assert log.splitlines()[-1].startswith("error: creating server: Internal - ")
    assert "/no/such/folder" in log.splitlines()[-1]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_server_with_status_0(run, tmp_path, number):
    server = run(f"--model-repository={tmp_path}")
    server.until("cache_enabled")

    server.signal(number)

    status, log = server.end()
    assert status == 0
    assert f"Signal ({int(number)}) received." in log
    assert "Traceback" not in log


def test_the_tables_show_the_options(run, tmp_path):
    (tmp_path / "broken" / "1").mkdir(parents=True)
    (tmp_path / "broken" / "config.pbtxt").write_text('backend: "nowhere"\n')
    server = run(f"--model-repository={tmp_path}", "--exit-on-error=false", "--id=mine")
    server.until("| cache_enabled ")

    log = "".join(server.lines)
    assert re.search(r"^\| Repository Agent \| Path \|$", log, re.MULTILINE)
    assert re.search(r"^\| Backend \| Path \| Config \|$", log, re.MULTILINE)
    assert re.search(
        r"^\| broken \| 1       \| UNAVAILABLE: Invalid argument: no backend named 'nowhere' ",
        log,
        re.MULTILINE,
    )
    assert re.search(r"^\| server_id  .*\| mine ", log, re.MULTILINE)


def test_a_model_that_fails_ends_the_start_after_the_tables(run, tmp_path):
    (tmp_path / "broken" / "1").mkdir(parents=True)
    (tmp_path / "broken" / "config.pbtxt").write_text('backend: "nowhere"\n')

    status, log = run(f"--model-repository={tmp_path}").end()

    assert status == 1
    assert "| broken | 1       | UNAVAILABLE" in log
    assert log.splitlines()[-1].startswith(
        "error: creating server: Internal - failed to load all models: 'broken' cannot be loaded; "
    )


def test_ports_are_open_while_models_load(run, slow_backend):
    path, repository = slow_backend
    server = run(repository, path=path)
    port = int(server.until("Started Metrics Service").rpartition(":")[2].strip('"\n'))
    server.until("loading now")

    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as answer:
        assert answer.status == 200


def test_a_second_signal_ends_the_server_at_once(run, slow_backend):
    path, repository = slow_backend
    server = run(repository, path=path)
    server.until("loading now")
    server.signal(signal.SIGTERM)
    server.until("Signal (15) received.")

    start = time.monotonic()
    server.signal(signal.SIGTERM)

    status, _ = server.end()
    assert status == 1
    assert time.monotonic() - start < 5


def test_the_end_waits_no_longer_than_it_may(run, slow_backend):
    path, repository = slow_backend
    server = run(repository, "--exit-timeout-secs=1", path=path)
    server.until("loading now")

    start = time.monotonic()
    server.signal(signal.SIGTERM)

    status, log = server.end()
    assert status == 1
    assert "Exit timeout expired. Exiting immediately." in log
    assert time.monotonic() - start < 10


def test_a_port_in_use_ends_the_start(run, tmp_path):
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as taken:
        port = taken.getsockname()[1]

        status, log = run(f"--model-repository={tmp_path}", f"--metrics-port={port}").end()

    assert status == 1
    assert (
        f"failed to start metrics service: Unavailable - Socket '127.0.0.1:{port}' already in use"
        in log
    )


def test_a_flag_without_effect_is_named_once(run, tmp_path):
    server = run(f"--model-repository={tmp_path}", "--http-thread-count=4")
    server.until("cache_enabled")

    assert (
        "".join(server.lines).count(
            "--http-thread-count has no effect: one event loop serves all connections"
        )
        == 1
    )


def test_settings_of_a_backend_that_is_not_there_are_named(run, tmp_path):
    backends = tmp_path / "backends" / "mine"
    backends.mkdir(parents=True)
    (backends / "model.py").touch()
    server = run(
        f"--model-repository={tmp_path}",
        f"--backend-directory={backends.parent}",
        *(f"--backend-config={name}threads=2" for name in ("", "mine,", "ours,")),
    )
    server.until("cache_enabled")

    (line,) = (line for line in server.lines if "has no effect" in line)
    assert "--backend-config=ours has no effect: no backend has that name (installed: " in line
