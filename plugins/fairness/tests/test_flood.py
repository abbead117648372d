"""examples/fairness/flood.py against a server that fails: its exit status tells it from a good result."""

import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parents[3] / "examples" / "fairness" / "flood.py"


class Server(ThreadingHTTPServer):
    """Answers a user with a status; 0 closes the connection without an answer."""

    request_queue_size = 128
    daemon_threads = True

    def __init__(self, statuses):
        super().__init__(("127.0.0.1", 0), Handler)
        self.statuses = statuses


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        status = self.server.statuses[self.headers["x-user"]]
        if not status:
            self.close_connection = True
            return
        self.send_response(status)
        self.send_header("Content-Length", "4")
        self.end_headers()
        self.wfile.write(b"busy")

    def log_message(self, *_):
        pass


@pytest.fixture
def flood():
    """Run the program against a server with these statuses; return (exit status, its errors)."""
    servers = []

    def run(**statuses):
        server = Server(statuses)
        servers.append(server)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"127.0.0.1:{server.server_address[1]}"
        done = subprocess.run(
            [sys.executable, PROGRAM, address, "0.2"], capture_output=True, text=True, timeout=60
        )
        return done.returncode, done.stderr

    yield run
    for each in servers:
        each.shutdown()
        each.server_close()


def test_a_flood_that_is_refused_is_an_error(flood):
    status, text = flood(alice=200, bob=503)

    assert status == 2
    assert "64 of 64 clients of bob failed, such as bob: 503 busy" in text


def test_a_flood_without_answers_is_an_error(flood):
    status, text = flood(alice=200, bob=0)

    assert status == 2
    assert "clients of bob failed, such as " in text


def test_a_light_caller_that_is_refused_is_an_error(flood):
    status, text = flood(alice=429, bob=200)

    assert status == 2
    assert "alice: 429 busy" in text
