"""The programs `ray` and `serve`, as docs/operate/ray.md and the README use them.

Two nodes run on this machine, with a token.
"""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from pathlib import Path

import numpy as np
import pytest
import tritonclient.grpc as triton

ROOT = Path(__file__).parents[3]
PAGES = ROOT / "docs" / "operate" / "ray.md", ROOT / "plugins" / "ray" / "README.md"
PROGRAMS = Path(sys.executable).parent
PIXELS = np.zeros((1, 8, 8), np.float32)


class Nodes:
    """Two nodes of Ray with a processor each, which require a token, and the commands of Serve for them."""

    def __init__(self, folder, free_port):
        self.port, self.dashboard, self.http, self.grpc = (free_port() for _ in range(4))
        # The token is in the folder of the user.
        token = {"HOME": str(folder), "RAY_AUTH_MODE": "token"}
        self.environment = {**os.environ, **token, "RAY_raylet_start_wait_time_s": "60"}
        self._log = (folder / "log").open("w")
        self._started = []
        self._token = self.run("ray", "get-auth-token", "--generate").strip()

    def start(self):
        """Start the nodes. Return False if one has ended instead."""
        head = ("--head", f"--port={self.port}", f"--dashboard-port={self.dashboard}")
        for number, options in ((1, head), (2, (f"--address=127.0.0.1:{self.port}",))):
            self._started.append(self.begin("ray", "start", *options, "--num-cpus=1", "--block"))
            if not self._become(number):
                return False
        return True

    def _become(self, number):
        """Wait until there are so many nodes. Return False if one has ended instead."""
        version = self.of_dashboard("/api/version")

        def ended():
            return any(each.poll() is not None for each in self._started)

        def ready():
            return opened(version) and self.status().count("node_") >= number

        wait_for(lambda: ended() or ready())
        return not ended()

    def begin(self, program, *arguments):
        return subprocess.Popen(
            [PROGRAMS / program, *arguments],
            cwd=ROOT, env=self.environment, stdout=self._log, stderr=self._log,
        )  # fmt: skip

    def run(self, program, *arguments):
        done = subprocess.run(
            [PROGRAMS / program, *arguments],
            cwd=ROOT, env=self.environment, capture_output=True, text=True, timeout=300,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def of_dashboard(self, path):
        """Return a request to the dashboard, with the token."""
        url = f"http://127.0.0.1:{self.dashboard}{path}"
        return urllib.request.Request(url, headers={"Authorization": f"Bearer {self._token}"})

    def status(self):
        return self.run("ray", "status", f"--address=127.0.0.1:{self.port}")

    def serve(self, command, *arguments):
        return self.run(
            "serve", command, f"--address=http://127.0.0.1:{self.dashboard}", *arguments
        )

    def end(self):
        for each in reversed(self._started):
            each.send_signal(signal.SIGTERM)
        for each in self._started:
            each.wait(120)
        self._log.close()


@pytest.fixture(scope="module")
def nodes(tmp_path_factory, free_port):
    # Ray ends on a busy machine: a node waits fifteen seconds for its agents.
    for _ in range(3):
        started = Nodes(tmp_path_factory.mktemp("nodes"), free_port)
        try:
            if started.start():
                yield started
                return
        finally:
            started.end()
    pytest.fail("Ray has not started in three attempts")


def opened(url):
    try:
        with urllib.request.urlopen(url, timeout=5) as response:
            return response.status == 200
    except OSError:
        return False


def wait_for(condition, seconds=300):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.5)


def ask(port, array=PIXELS, model="digits"):
    tensor = {"name": "pixels", "shape": list(array.shape), "datatype": "FP32"}
    tensor["data"] = array.ravel().tolist()
    body = json.dumps({"inputs": [tensor]}).encode()
    url = f"http://127.0.0.1:{port}/v2/models/{model}/infer"
    with urllib.request.urlopen(urllib.request.Request(url, body), timeout=120) as response:
        return json.load(response)


@pytest.fixture
def config(nodes, free_port, tmp_path):
    """Write examples/ray/config.yaml with free ports, and models for user_config: config(names) → path."""
    text = (ROOT / "examples" / "ray" / "config.yaml").read_text()
    ports = {8000: nodes.http, 8100: free_port(), 8200: free_port()}
    for number, free in ports.items():
        text = text.replace(f": {number}", f": {free}")

    def write(names):
        path = tmp_path / "config.yaml"
        # The proxies of both nodes would share one port of this machine.
        only = "proxy_location: HeadOnly\n"
        grpc = "grpc_options:\n  grpc_servicer_functions: [core_ray:add_v2]\n"
        grpc += f"  port: {nodes.grpc}\n"
        path.write_text(only + grpc + text.replace("[digits]", f"[{names}]"))
        return path

    write.ports = ports
    yield write
    nodes.serve("shutdown", "--yes")


def running(nodes):
    """Return the replicas of the application `models`, if all of it is up to date."""
    found = json.loads(
        urllib.request.urlopen(nodes.of_dashboard("/api/serve/applications/"), timeout=30).read()
    )["applications"].get("models")
    if not found or found["status"] != "RUNNING":
        return None
    (deployment,) = found["deployments"].values()
    replicas = [each for each in deployment["replicas"] if each["state"] == "RUNNING"]
    return {each["replica_id"]: each["node_id"] for each in replicas}


def test_a_configuration_runs_on_two_nodes_and_changes_models_without_a_restart(nodes, config):
    nodes.serve("deploy", str(config("digits")))
    wait_for(lambda: len(running(nodes) or ()) == 2)
    before, failed, answered, ended = running(nodes), [], [], threading.Event()
    assert ask(nodes.http)["model_name"] == "digits"
    with triton.InferenceServerClient(f"127.0.0.1:{nodes.grpc}") as client:
        assert client.is_model_ready("digits")

    def load():
        while not ended.is_set():
            try:
                answered.append(ask(nodes.http)["model_name"])
            except OSError as error:
                failed.append(error)

    thread = threading.Thread(target=load)
    thread.start()
    nodes.serve("deploy", str(config("digits, breast_cancer")))
    wait_for(lambda: loaded(config.ports[8100]) and loaded(config.ports[8100] + 1))
    wait_for(lambda: running(nodes) is not None)
    ended.set()
    thread.join()

    assert running(nodes) == before
    assert (failed, set(answered)) == ([], {"digits"})


def loaded(port):
    return opened(f"http://127.0.0.1:{port}/v2/models/breast_cancer/ready")


@contextlib.contextmanager
def serving(nodes, log, *arguments):
    """Run `serve run` until the end of the block; it ends as with Ctrl-C. The port is 8000."""
    with log.open("w") as file:
        program = subprocess.Popen(
            [PROGRAMS / "serve", "run", f"--address=127.0.0.1:{nodes.port}", *arguments],
            cwd=ROOT, env=nodes.environment, stdout=file, stderr=file,
        )  # fmt: skip
        try:
            wait_for(lambda: "is ready at" in log.read_text() or program.poll() is not None)
            yield
        finally:
            program.send_signal(signal.SIGINT)
            assert program.wait(120) in (0, 1), log.read_text()


def said(page):
    """Return the arguments of each `serve run` of a page, in one piece."""
    return re.findall(r"^ *serve run (.*)$", page.read_text(), re.M)


OF_MODELS = sorted({each for page in PAGES for each in said(page) if "core_ray:app" in each})


@pytest.mark.parametrize("arguments", OF_MODELS)
def test_a_serve_run_of_the_page_answers_until_it_is_interrupted(nodes, tmp_path, arguments):
    with serving(nodes, tmp_path / "log", *arguments.split()):
        assert ask(8000)["model_name"] == "digits"
        assert opened("http://127.0.0.1:8000/v2/models/digits/ready")


def test_the_example_of_a_pipeline_answers(nodes, tmp_path):
    (arguments,) = (each for each in said(PAGES[0]) if "pipeline" in each)

    with serving(nodes, tmp_path / "log", *arguments.split()):
        body = json.dumps(PIXELS.tolist()).encode()
        request = urllib.request.Request("http://127.0.0.1:8000", body)
        with urllib.request.urlopen(request, timeout=120) as response:
            (digit,) = json.load(response)

    assert digit in range(10)


def test_serve_run_refuses_a_misspelt_argument_at_once(nodes):
    done = subprocess.run(
        [PROGRAMS / "serve", "run", f"--address=127.0.0.1:{nodes.port}", "core_ray:app",
         "model_repositry=examples/models"],
        cwd=ROOT, env=nodes.environment, capture_output=True, text=True, timeout=300,
    )  # fmt: skip

    assert done.returncode != 0
    assert "did you mean 'model_repository'?" in done.stdout + done.stderr


def test_the_example_of_a_batch_reads_digits(nodes):
    environment = {**nodes.environment, "RAY_ADDRESS": f"127.0.0.1:{nodes.port}"}

    done = subprocess.run(
        [sys.executable, ROOT / "examples" / "ray" / "batch.py"],
        env=environment, capture_output=True, text=True, timeout=300,
    )  # fmt: skip

    assert done.returncode == 0, done.stderr
    assert re.search(r"^\d{4} of 1797 digits are right$", done.stdout, re.M), done.stdout
