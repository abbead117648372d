"""Servers for the tests: one with known delays, and a real one with models of several kinds."""

import shutil
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest
from core_bench.plan import Side, Timing

import core

# Now: the tests of plugins forget modules that were imported first within them, and areas are made once.
import frontends.http.frontend  # noqa: F401
from core.request import SEQUENCE_END, SEQUENCE_START

QUICK = Timing(round_s=0.2, rounds=2, most_rounds=2, settle_s=0.02, warmup_s=0.0)


@pytest.fixture(scope="session")
def known_program(tmp_path_factory):
    """Compile known_server.cc."""
    compiler = shutil.which("c++") or shutil.which("g++")
    if not compiler:
        pytest.skip("no C++ compiler")
    program = tmp_path_factory.mktemp("known") / "known_server"
    source = Path(__file__).with_name("known_server.cc")
    subprocess.run([compiler, "-O1", "-std=c++17", str(source), "-o", str(program)], check=True)
    return program


class KnownServer:
    """A process that answers after known delays."""

    def __init__(self, program, delays_us, *stall_ms):
        command = [str(program), ",".join(map(str, delays_us)), *map(str, stall_ms)]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.port = int(self.process.stdout.readline())
        self.url = f"127.0.0.1:{self.port}"

    def side(self, **more):
        return Side(**{"name": "m", "model": "m", "url": self.url, "different": 2, **more})

    def end(self):
        self.process.stdin.close()
        self.process.wait(10)
        self.process.stdout.close()


@pytest.fixture(scope="module")
def start_known(known_program):
    """Start a server that the caller ends."""
    return lambda *arguments: KnownServer(known_program, *arguments)


@pytest.fixture
def known(start_known):
    """Start a server: known(delays_us, stall_at_ms, stall_ms)."""
    servers = []

    def start(delays_us, *stall_ms):
        servers.append(start_known(delays_us, *stall_ms))
        return servers[-1]

    yield start
    for each in servers:
        each.end()


class Sums:
    """A model with sequences: sums of the values since the start; it keeps what it has seen."""

    def __init__(self):
        self.open = {}
        self.lengths = []
        self.wrong = []

    def __call__(self, x, requests):
        total = []
        for request, value in zip(requests, x.reshape(-1), strict=True):
            number = request.correlation_id
            first = bool(request.flags & SEQUENCE_START)
            if first == (number in self.open):
                self.wrong.append((number, first))
            steps = self.open.setdefault(number, [])
            steps.append(int(value))
            total.append(sum(steps))
            if request.flags & SEQUENCE_END:
                self.lengths.append(len(self.open.pop(number)))
        return np.array(total, np.int32).reshape(x.shape)


class Served:
    """A server in this process, with ports."""

    def __init__(self):
        self.server = core.Server(allow_client_shm=True).start()
        self.sums = Sums()
        self.calls = 0
        self._bind()
        self.ports = self.server.serve(http_port=0, grpc_port=0)

    def _bind(self):
        four = {"inputs": {"x": ("FP32", [4])}, "outputs": {"y": ("FP32", [4])}}
        self.server.bind("double", lambda x: 2 * x, batching=True, max_batch_size=8, **four)
        self.server.bind("broken", self._broken, **four)
        self.server.bind(
            "words",
            self._words,
            inputs={"text": ("BYTES", [1])},
            outputs={"word": ("BYTES", [1])},
        )
        self.server.bind(
            "sums",
            self.sums,
            inputs={"x": ("INT32", [1])},
            outputs={"sum": ("INT32", [1])},
            batching=True,
            max_batch_size=8,
            requests=True,
            config={"sequence_batching": {"oldest": {"max_candidate_sequences": 8}}},
        )

    def _broken(self, x):
        raise core.CoreError(core.Kind.UNAVAILABLE, "no more room")

    def _words(self, text):
        for word in text[0].split():
            time.sleep(0.002)
            yield {"word": np.array([word], object)}

    def side(self, model, protocol="http", **more):
        url = f"127.0.0.1:{self.ports[protocol]}"
        return Side(**{"name": model, "model": model, "url": url, "protocol": protocol, **more})

    def successes(self, model):
        """Return how many requests the server has answered."""
        from core_bench.measure.target import Target

        with Target(self.side(model, streaming=model == "words", string_data="a"), QUICK) as target:
            found = target.control.statistics(model, "")
        return sum(int(each["inference_stats"]["success"]["count"]) for each in found)


@pytest.fixture(scope="module")
def served():
    made = Served()
    yield made
    made.server.stop()
