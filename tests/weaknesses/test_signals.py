"""Broken pipes: the reader of the server's output may end first, and SIGPIPE must not end the server."""

import http.client
import os
import re
import signal
import subprocess
import sys

import pytest

BUFFERED = {**os.environ, "PYTHONUNBUFFERED": ""}  # the default of Python


@pytest.fixture
def process(tmp_path):
    """A server process that writes to a pipe, and the port of its HTTP."""
    (tmp_path / "models").mkdir()
    command = [sys.executable, "-m", "core.serve", f"--model-repository={tmp_path}/models"]
    command += ["--http-address=127.0.0.1", "--http-port=0", "--log-verbose=1"]
    command += ["--allow-grpc=false", "--allow-metrics=false"]
    started = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        env=BUFFERED,
    )
    for line in started.stdout:
        if found := re.search(rb"Started HTTPService at \S+:(\d+)", line):
            break
    yield started, int(found[1])
    started.kill()
    started.wait()


def ask(port):
    return status_of(port, "POST", "/v2/models/none/infer", b"{}")


def ready(port):
    return status_of(port, "GET", "/v2/health/ready") == 200


def status_of(port, method, path, body=None):
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    client.request(method, path, body)
    status = client.getresponse().status
    client.close()
    return status


def test_a_server_whose_output_has_no_reader_continues(process):
    """SIGPIPE ended servers; so would an error of the log that reaches a handler."""
    started, port = process
    while not ready(port):  # before that it does not know which models there are
        pass
    started.stdout.close()
    os.kill(started.pid, signal.SIGPIPE)

    found = [ask(port) for _ in range(20)]  # each writes a line to the pipe that is broken

    assert found == [404] * 20
    assert started.poll() is None
    started.terminate()
    assert started.wait(30) == 0


def test_unwritten_output_is_no_error_at_exit():
    """The interpreter tries once more when it ends, and its status would be 120."""
    code = (
        "import sys\nfrom core import serve\nsys.stdin.read()\nsys.stdout.write('left')\n"
        "serve._let_go_of_broken_pipes()\n"
    )
    started = subprocess.Popen(
        [sys.executable, "-c", code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=BUFFERED,
    )
    started.stdout.close()
    started.stdin.close()

    assert started.wait(60) == 0
