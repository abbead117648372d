"""Films, models over them, a web server and cameras: all made here, none from a network."""

import contextlib
import socket
import subprocess
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from backend_video.films import film

import core

FOLDER = Path(__file__).parent
LOCAL = {"hosts": "127.0.0.1:*, localhost:*", "networks": "127.0.0.0/8", "timeout_s": "5"}
MODELS = {
    "bare": {},
    "films": {"folders": "films"},
    "nv12": {"folders": "films", "format": "NV12"},
    "bgr": {"folders": "films", "format": "BGR"},
    "small": {"folders": "films", "max_megapixels": "0.002", "max_megabytes": "0.005"},
    "strict": {"rate": "5", "max_width": "32", "frames": "4"},
    "web": LOCAL,
    "short": {**LOCAL, "max_megabytes": "0.005"},
    "impatient": {**LOCAL, "timeout_s": "0.5", "reconnect_s": "0.3"},
    "slow": {**LOCAL, "timeout_s": "0.8", "reconnect_s": "0.3"},
}


def config_of(parameters, more=""):
    """Return a config.pbtxt with these parameters."""
    entries = [
        f'parameters {{ key: "{key}" value {{ string_value: "{value}" }} }}'
        for key, value in parameters.items()
    ]
    return "\n".join(['backend: "video"', more, *entries])


@pytest.fixture(scope="session")
def config():
    return config_of


@pytest.fixture(scope="session")
def film50():
    """A film of two seconds, whose frames show their numbers; its index is at its end."""
    return film(50)


@pytest.fixture(scope="session")
def server(tmp_path_factory, film50):
    """A server with MODELS. The film is films/film.mp4 of those with a folder."""
    repository = tmp_path_factory.mktemp("models")
    for name, parameters in MODELS.items():
        (repository / name / "1").mkdir(parents=True)
        (repository / name / "films").mkdir()
        (repository / name / "films" / "film.mp4").write_bytes(film50)
        one = "instance_group { count: 1 kind: KIND_CPU }"
        (repository / name / "config.pbtxt").write_text(config_of(parameters, one))
    with core.Server(model_repository=str(repository)) as running:
        yield SimpleNamespace(running=running, repository=repository)


@pytest.fixture(scope="session")
def ask(server):
    """ask(model, url, **request parameters): all answers to a URL, or to the bytes of a file."""

    def run(model, video, **parameters):
        return list(begin(server.running, model, video, parameters))

    return run


@pytest.fixture(scope="session")
def stream(server):
    """stream(model, url, **request parameters): the answers as they come; leaving it cancels the request."""

    def run(model, video, **parameters):
        return begin(server.running, model, video, parameters)

    return run


def begin(running, model, video, parameters):
    name = "url" if isinstance(video, str) else "file"
    return running.stream(model, {name: [video]}, parameters=parameters)


class Site(ThreadingHTTPServer):
    """A web server. `pages` has a function(handler) for each path."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.pages = {}
        self.asked = []  # (path, value of Range)
        self.url = f"http://127.0.0.1:{self.server_address[1]}"

    def handle_error(self, request, client_address):
        pass  # a client that goes away is no error here


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.server.asked.append((self.path, self.headers.get("Range")))
        self.server.pages[self.path](self)

    def answer(self, status, headers=(), body=b""):
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@pytest.fixture
def site():
    running = Site()
    thread = threading.Thread(target=running.serve_forever, args=(0.02,))
    thread.start()
    yield running
    running.shutdown()
    running.server_close()
    thread.join()


@pytest.fixture
def listener():
    """A port that accepts connections and says nothing."""
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as made:
        yield made


@pytest.fixture
def camera():
    """camera(): a real RTSP server with frames that never end; `.url`, `.kill()`, `.restart()`."""
    python = "/usr/bin/python3"
    script = str(FOLDER / "rtsp_server.py")
    if not Path(python).exists() or subprocess.run([python, script, "--check"]).returncode:
        pytest.skip(
            "GStreamer's RTSP server is not installed: apt install gir1.2-gst-rtsp-server-1.0"
        )
    running = []

    class Camera:
        def __init__(self):
            self.port = 0
            self.restart()

        def restart(self):
            self.process = subprocess.Popen(
                [python, script, str(self.port)], stdout=subprocess.PIPE, text=True
            )
            running.append(self.process)
            self.port = int(self.process.stdout.readline())
            self.url = f"rtsp://127.0.0.1:{self.port}/film"

        def kill(self):
            self.process.kill()
            self.process.wait()

    yield Camera
    for each in running:
        each.kill()
        each.wait()
        each.stdout.close()


@pytest.fixture(scope="session")
def eventually():
    """eventually(condition): wait until it holds, at most 20 seconds."""

    def run(condition):
        end = time.monotonic() + 20
        while not condition():
            assert time.monotonic() < end
            time.sleep(0.005)

    return run


@pytest.fixture(scope="session")
def as_bytes():
    """as_bytes(data): BYTES[1]"""

    def run(data):
        found = np.empty(1, object)
        found[0] = data
        return found

    return run
