"""A server process with models of the test backends, and pages in a headless Chromium."""

import asyncio
import json
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time
import urllib.request
import zlib
from contextlib import ExitStack, asynccontextmanager

import pytest

START_S = 180  # of a server, on a busy machine
PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
ARGUMENTS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    "--disable-dev-shm-usage",
    # A camera and a microphone that Chromium makes itself, and no question whether a page may use them.
    *("--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream"),
)


def free_ports(count):
    """Return different free ports: all are bound before one is given up."""
    with ExitStack() as stack:
        bound = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in bound:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in bound]


@pytest.fixture(scope="session")
def ports():
    """Return a function that returns different free ports."""
    return free_ports


class Models:
    """A model repository, to which tests write models of the test backends."""

    def __init__(self, path):
        self.path = path
        self.parent = path.parent
        path.mkdir()

    def write(self, name, config, versions=(1,)):
        for version in versions:
            (self.path / name / str(version)).mkdir(parents=True, exist_ok=True)
        (self.path / name / "config.pbtxt").write_text(config)

    def identity(self, name, dims, *, delay_ms=0, more="", tensors=("INPUT0", "OUTPUT0"), **other):
        """Write a model that copies its input, after a delay."""
        value = f'value {{ string_value: "{delay_ms}" }}'
        parameter = f'parameters {{ key: "execute_delay_ms" {value} }}\n' if delay_ms else ""
        config = _identity(dims, tensors) + more + parameter
        self.write(name, config, **other)

    def ensemble(self, name, *steps, **parameters):
        """Write an ensemble of identity models of 16 numbers, one after the other.

        parameters   such as loop0_steps="0-1"
        """
        names = ["samples", *(f"after_{each}" for each in steps[:-1]), "features"]
        rows = [_step(each, *names[i : i + 2]) for i, each in enumerate(steps)]
        head = _identity([16], ("samples", "features"))
        head = head.replace('backend: "identity"', 'platform: "ensemble"')
        said = "".join(_parameter(key, value) for key, value in parameters.items())
        self.write(name, f"{head}ensemble_scheduling {{\n{''.join(rows)}}}\n{said}")


def _identity(dims, tensors):
    one, other = tensors
    return (
        'backend: "identity"\nmax_batch_size: 8\n'
        f'input {{ name: "{one}" data_type: TYPE_FP32 dims: {list(dims)} }}\n'
        f'output {{ name: "{other}" data_type: TYPE_FP32 dims: {list(dims)} }}\n'
    )


def _parameter(key, value):
    name = re.sub(r"^([a-z]+)(\d+)_", r"\1[\2].", key)
    return f'parameters {{ key: "{name}" value {{ string_value: "{value}" }} }}\n'


def _step(model, one, other):
    return (
        f'step {{ model_name: "{model}" model_version: -1 input_map {{ key: "INPUT0" value: "{one}" }} '
        f'output_map {{ key: "OUTPUT0" value: "{other}" }} }}\n'
    )


class Served:
    """A server process. `start` after `kill` serves on the same port."""

    def __init__(self, models, *flags):
        self.models = models
        self.port, self.metrics_port = free_ports(2)
        self.url = f"http://127.0.0.1:{self.port}/"
        self._command = [
            *(sys.executable, "-m", "core.serve", f"--model-repository={models.path}"),
            *("--http-address=127.0.0.1", f"--http-port={self.port}", "--allow-grpc=false"),
            *(f"--metrics-port={self.metrics_port}", "--metrics-address=127.0.0.1"),
            *("--exit-on-error=false", "--allow-console=true", *flags),
        ]
        self.log = models.parent / f"log-{self.port}"
        self.process = None

    def start(self):
        with self.log.open("a") as log:
            self.process = subprocess.Popen(self._command, stdout=log, stderr=log)
        end = time.monotonic() + START_S
        while not self.answers():
            assert self.process.poll() is None, self.log.read_text()
            assert time.monotonic() < end, self.log.read_text()
            time.sleep(0.05)
        return self

    def answers(self):
        try:
            with urllib.request.urlopen(f"{self.url}v2/health/live", timeout=5) as answer:
                return answer.status == 200
        except OSError:
            return False

    def ready(self, *models, token=""):
        """Return when these models serve."""
        end = time.monotonic() + START_S
        for model in models:
            while self.ask(f"v2/models/{model}/ready", token=token)[0] != 200:
                assert time.monotonic() < end, self.log.read_text()
                time.sleep(0.05)
        return self

    def kill(self):
        self.process.kill()
        self.process.wait(START_S)

    def stop(self):
        """End the server as an operator does; return the seconds that it took."""
        begun = time.monotonic()
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        self.process.wait(START_S)
        return time.monotonic() - begun

    def ask(self, path, body=None, *, headers=None, token=""):
        """Return (status, headers, text) of a request; POST with a body, else GET."""
        data = None if body is None else json.dumps(body).encode()
        headers = {**(headers or {}), **({"Authorization": f"Bearer {token}"} if token else {})}
        request = urllib.request.Request(f"{self.url}{path}", data, headers)
        try:
            with urllib.request.build_opener(_Stay).open(request, timeout=30) as answer:
                return answer.status, answer.headers, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.headers, error.read().decode()

    def json(self, path, body=None, **more):
        status, _, text = self.ask(path, body, **more)
        assert status == 200, text
        return json.loads(text)

    def infer(self, model, *shape):
        count = 1
        for size in shape:
            count *= size
        data = [i / count for i in range(count)]
        tensor = {"name": "INPUT0", "datatype": "FP32", "shape": list(shape), "data": data}
        return self.json(f"v2/models/{model}/infer", {"inputs": [tensor]})

    async def load(self, model, *shape, pause_s=0.02):
        """Send requests to a model, one after the other, until the task is cancelled."""
        while True:
            await asyncio.to_thread(self.infer, model, *shape)
            await asyncio.sleep(pause_s)

    def events(self, count, *, token=""):
        """Return the first events of the stream: (name, data)."""
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        request = urllib.request.Request(f"{self.url}console/stream", headers=headers)
        found = []
        with urllib.request.urlopen(request, timeout=30) as answer:
            while len(found) < count:
                name = answer.readline().decode().removeprefix("event: ").strip()
                data = answer.readline().decode().removeprefix("data: ")
                answer.readline()
                found.append((name, json.loads(data)))
        return found


class _Stay(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *arguments):
        return None


@pytest.fixture
def models(tmp_path):
    return Models(tmp_path / "models")


@pytest.fixture(scope="module")
def serve_all(tmp_path_factory):
    """Start a server for all tests of a file: `serve_all(write, *flags)`; write(models) writes them."""
    pytest.importorskip("backend_testing", reason="the test backends are not installed")
    running = []

    def start(write, *flags):
        models = Models(tmp_path_factory.mktemp("server") / "models")
        write(models)
        running.append(Served(models, *(each.format(models.parent) for each in flags)).start())
        return running[-1]

    yield start
    for each in running:
        each.stop()


@pytest.fixture
def serve(models):
    """Start a server of `models` with flags: `serve("--log-verbose=1")`."""
    pytest.importorskip("backend_testing", reason="the test backends are not installed")
    running = []

    def start(*flags):
        found = Served(models, *flags).start()
        running.append(found)
        return found

    yield start
    for each in running:
        each.stop()


@pytest.fixture
def picture(tmp_path):
    """The path of a picture: white above its diagonal, black below."""
    path = tmp_path / "picture.png"
    path.write_bytes(_grey_png(64, lambda x, y: 255 * (x > y)))
    return path


def _grey_png(size, value):
    """Return the bytes of a square picture; value(x, y) is from 0 to 255."""
    rows = b"".join(b"\0" + bytes(value(x, y) for x in range(size)) for y in range(size))

    def chunk(kind, data):
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    head = struct.pack(">IIBBBBB", size, size, 8, 0, 0, 0, 0)
    body = chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + body


class Browser:
    """One window. `hosts` are the servers that it has asked, `problems` the errors in its log."""

    def __init__(self, page):
        self.page = page
        self.hosts = set()
        self.problems = []
        page.on("request", lambda each: self._asked(each.url))
        page.on(
            "console", lambda each: each.type in ("error", "warning") and self._wrong(each.text)
        )
        page.on("pageerror", lambda each: self._wrong(str(each)))

    def text(self, text, exact=False):
        """Return the first element with a text that a person sees."""
        return self.page.locator("header, main").get_by_text(text, exact=exact).first

    def _asked(self, url):
        if url.startswith("http"):
            self.hosts.add(url.split("/")[2])

    def _wrong(self, text):
        self.problems.append(text)


@pytest.fixture
def browse(tmp_path):
    """Open a window: `async with browse() as browser`. Skips where there is no browser."""
    async_api = pytest.importorskip("playwright.async_api", reason="playwright is not installed")
    program = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if program is None:
        pytest.skip(f"no browser is installed ({', '.join(PROGRAMS)})")

    @asynccontextmanager
    async def open_window(width=1360, height=900, **options):
        async with async_api.async_playwright() as playwright:
            context = await playwright.chromium.launch_persistent_context(
                str(tmp_path / f"profile-{os.urandom(4).hex()}"),
                executable_path=program,
                args=list(ARGUMENTS),
                viewport={"width": width, "height": height},
                **options,
            )
            try:
                yield Browser(context.pages[0])
            finally:
                await context.close()

    return open_window
