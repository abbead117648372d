"""A soak: models, a server on a quarter of their memory, a Zipf trace, and what came of it."""

from __future__ import annotations

import json
import os
import random
import signal
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from soak.server import Server

from benchmarks import processes
from memory_budget.clients import Clients
from memory_budget.lru import hit_rate
from memory_budget.models import first_of, write_models
from memory_budget.sampler import Sampler

TOLERANCE = 0.05  # of the budget; and these bytes: heaps of the server itself, and the requests
TOLERANCE_BYTES = 16 << 20
HIT_RATE_TOLERANCE = 0.05
ZIPF = 1.1
_MOST_A_MINUTE = 120_000  # requests: more than any server of this soak answers
PART = 4  # the budget is this part of what all models take


@dataclass
class Found:
    """The result of a soak. `problems` is empty if everything held."""

    results: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)
    facts: dict[str, str] = field(default_factory=dict)


def soak(
    folder: Path,
    models: int = 200,
    least_mb: float = 20,
    most_mb: float = 200,
    requests: int = 20_000,
    threads: int = 8,
    seed: int = 1,
    python: int = 4,
    minutes: float = 0,
) -> Found:
    """Run a soak in an empty folder, and return what was found.

    minutes   for which requests are sent; 0 to send `requests` of them, however long that takes
    """
    (folder / "models").mkdir()
    sizes = write_models(folder / "models", models, least_mb, most_mb, seed, python)
    budget = sum(sizes.values()) // PART
    python_models = {each.parent.parent.name for each in folder.glob("models/*/1/model.py")}
    trace = zipf_trace(models, int(minutes * _MOST_A_MINUTE) or requests, seed)
    server = Server(
        folder,
        "--model-control-mode=explicit",
        f"--memory-budget={budget}",
        "--load-on-request=true",
        "--memory-wait-secs=60",
    )
    found = Found()
    try:
        _await_ready(server)
        sampler = Sampler(server.pid)
        sampler.start()
        _quiet(server, found, models, seed)
        clients = Clients(
            server.ports.http,
            server.ports.grpc,
            trace,
            lambda name: first_of(name, models),
            threads,
            seed,
            lambda name: name in python_models,
            minutes * 60,
        )
        disturber = Disturber(server, clients, models, bool(python_models), seed)
        disturber.start()
        begun = time.monotonic()
        clients.run()
        seconds = time.monotonic() - begun
        disturber.stop()
        time.sleep(0.2)
        sampler.stop()
        trace = trace[: clients.sent]
        _judge(found, server, disturber.merged(trace), sizes, budget, sampler, clients)
        found.facts["requests"] = f"{len(trace)} in {seconds:.1f} s"
        found.facts["disturbances"] = ", ".join(f"{n} {what}" for what, n in disturber.done.items())
        if clients.latencies:
            found.facts["the pinned model under loads"] = _latencies(clients)
        server.signal()
        if server.process.wait(60) != 0:
            found.problems.append(f"the server ended with status {server.process.returncode}")
    except Exception:
        print(server.last_words())
        raise
    finally:
        server.kill()
    return found


def zipf_trace(models: int, requests: int, seed: int) -> list[str]:
    """Return the models of the requests; every 20th is for the pinned one."""
    draw = random.Random(seed)
    names = [f"m{number}" for number in range(models)]
    draw.shuffle(names)
    weights = [1 / rank**ZIPF for rank in range(1, models + 1)]
    trace = draw.choices(names, weights, k=requests)
    return ["pinned" if number % 20 == 0 else name for number, name in enumerate(trace)]


class Disturber:
    """Loads models as an operator does, and kills child processes of models, until `stop`."""

    def __init__(self, server: Server, clients: Clients, models: int, kills: bool, seed: int):
        self.done: Counter[str] = Counter()
        self._loads: list[tuple[int, str]] = []  # number of the request before it, model
        self._clients, self._kills = clients, kills
        self._server, self._models, self._draw = server, models, random.Random(seed)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._ended.set()
        self._thread.join()

    def merged(self, trace: Sequence[str]) -> list[tuple[str, bool]]:
        """Return the models that were used, in order, and whether a request did: else an operator."""
        used = [(number, model, True) for number, model in enumerate(trace)]
        used += [(number, model, False) for number, model in self._loads]
        used.sort(key=lambda each: each[0])  # stable: a load comes after its request
        return [(model, by_request) for _, model, by_request in used]

    def _run(self) -> None:
        while not self._ended.wait(0.5):
            if self._kills and self._draw.random() < 0.2:
                self._kill()
            name = f"m{self._draw.randrange(self._models)}"
            try:
                _post(self._server, f"/v2/repository/models/{name}/load")
                self.done["loads by an operator"] += 1
                self._loads.append((self._clients.begun, name))
            except urllib.error.HTTPError:  # no memory: others were used more recently and are busy
                self.done["refused loads by an operator"] += 1

    def _kill(self) -> None:
        """Kill a child process of the server that runs a model; the server starts another one."""
        children = [
            each.pid
            for each in processes.tree(self._server.pid)
            if b"backend_python" in _command(_parent(each.pid))  # it is forked from a template
        ]
        if children:
            os.kill(self._draw.choice(children), signal.SIGKILL)
            self.done["killed processes"] += 1


def _parent(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def _quiet(server: Server, found: Found, models: int, seed: int) -> None:
    """Measure the pinned model without any load beside it."""
    quiet = Clients(
        server.ports.http,
        server.ports.grpc,
        ["pinned"] * 400,
        lambda name: first_of(name, models),
        2,
        seed,
    )
    quiet.run()
    found.problems += quiet.failures[:5]
    found.facts["the pinned model alone"] = _latencies(quiet)


def _latencies(clients: Clients) -> str:
    median, p99 = np.percentile(clients.latencies, [50, 99]) * 1e3
    return f"median {median:.1f} ms, p99 {p99:.1f} ms in {len(clients.latencies)} requests"


def _judge(
    found: Found,
    server: Server,
    trace: Sequence[tuple[str, bool]],
    sizes: dict[str, int],
    budget: int,
    sampler: Sampler,
    clients: Clients,
) -> None:
    found.results = clients.results
    if clients.failures:
        found.problems.append(f"{len(clients.failures)} failures, such as {clients.failures[:3]}")
    loads = _metric(server, "core_model_loads_on_request", 'result="success"')
    if not loads:
        found.problems.append("the metrics show no load on request")
    online = 1 - loads / sum(by_request for _, by_request in trace)
    offline = hit_rate(trace, sizes, budget)
    found.facts["hit rate"] = f"{online:.3f}, of an offline LRU {offline:.3f}"
    if online < offline - HIT_RATE_TOLERANCE:
        found.problems.append(f"the hit rate is {online:.3f}, an offline LRU has {offline:.3f}")
    most = sampler.most
    if most <= 0:
        found.problems.append("no sample of the memory is above what the server took before")
    found.facts["memory"] = (
        f"at most {most / 2**20:.0f} MiB in {len(sampler.samples)} samples, budget {budget / 2**20:.0f} "
        f"MiB, all models {sum(sizes.values()) / 2**20:.0f} MiB"
    )
    if most > budget * (1 + TOLERANCE) + TOLERANCE_BYTES:
        found.problems.append(
            f"the kernel counts {most / 2**20:.0f} MiB, the budget is {budget / 2**20:.0f} MiB"
        )


def _metric(server: Server, name: str, label: str) -> float:
    text = (
        urllib.request.urlopen(f"http://localhost:{server.ports.metrics}/metrics").read().decode()
    )
    lines = [line for line in text.splitlines() if line.startswith(f"{name}{{") and label in line]
    return sum(float(line.rpartition(" ")[2]) for line in lines)


def _await_ready(server: Server) -> None:
    end = time.monotonic() + 120
    while True:
        try:
            urllib.request.urlopen(
                f"http://localhost:{server.ports.http}/v2/health/ready", timeout=5
            )
            return
        except OSError:
            if not server.alive() or time.monotonic() > end:
                raise RuntimeError(f"the server is not ready: {server.last_words()}") from None
            time.sleep(0.1)


def _post(server: Server, path: str) -> bytes:
    request = urllib.request.Request(
        f"http://localhost:{server.ports.http}{path}", data=json.dumps({}).encode(), method="POST"
    )
    with urllib.request.urlopen(request, timeout=120) as response:
        found: bytes = response.read()
    return found
