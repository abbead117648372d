"""A soak: models, a server on a quarter of their memory, a Zipf trace, and what came of it."""

from __future__ import annotations

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
from memory_budget.models import LOADS, STAYS, first_of, write_models
from memory_budget.sampler import Sampler
from memory_budget.steady import BODY, Answers, Steady

TOLERANCE = 0.01  # of the budget, or these bytes: heaps of the server itself, and the requests
TOLERANCE_BYTES = 16 << 20
HIT_RATE_TOLERANCE = 0.05
P99_RATIO = 1.1  # of the pinned model, while others load, to that alone
LEAST_TIMES = 500  # requests for the pinned model, alone and while others load
WARM_S, SETTLE_S = 1.0, 1.0  # before a quiet time
ZIPF = 1.1
_MOST_A_SECOND = 2_000  # requests: more than any server of this soak answers
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
    seconds: float = 0,
    quiet: float = 0,
    apart: bool = False,
) -> Found:
    """Run a soak in an empty folder, and return what was found.

    seconds   for which requests are sent; 0 to send `requests` of them, however long that takes
    quiet     seconds before and after them in which only the pinned model has requests; 0 to compare no times
    apart     whether loads share the last processor with this program, by host policies of the server; the
              pinned model and its client have the first one
    """
    (folder / "models").mkdir()
    sizes = write_models(folder / "models", models, least_mb, most_mb, seed, python)
    budget = sum(sizes.values()) // PART
    python_models = {each.parent.parent.name for each in folder.glob("models/*/1/model.py")}
    first, last = min(os.sched_getaffinity(0)), max(os.sched_getaffinity(0))
    trace = zipf_trace(models, int(seconds * _MOST_A_SECOND) or requests, seed)
    server = Server(
        folder,
        "--model-control-mode=explicit",
        f"--memory-budget={budget}",
        "--load-on-request=true",
        "--memory-wait-secs=60",
        *(
            f"--host-policy={name},cpu-cores={core}-{core}"
            for name, core in ((LOADS, last), (STAYS, first))
            if apart
        ),
    )
    if apart:
        os.sched_setaffinity(0, {last})
    found = Found()
    steady: Steady | None = None
    try:
        _await_ready(server)
        _post(server, "/v2/models/pinned/infer", BODY)  # loads the library of ONNX Runtime, too
        sampler = Sampler(server.pid, sizes["pinned"])
        sampler.start()
        steady = Steady(server.ports.http, "pinned", first_of("pinned", models))
        if apart:
            os.sched_setaffinity(steady.pid, {first})
        moments = [_after(WARM_S), _after(quiet)]
        clients = Clients(
            server.ports.http,
            server.ports.grpc,
            trace,
            lambda name: first_of(name, models),
            threads,
            seed,
            lambda name: name in python_models,
            seconds,
        )
        disturber = Disturber(server, clients, models, bool(python_models), seed)
        disturber.start()
        clients.run()
        disturber.stop()
        moments += [time.monotonic(), _after(SETTLE_S), _after(quiet)]
        sampler.stop()
        trace = trace[: clients.sent]
        _judge(found, server, disturber.merged(trace), sizes, budget, sampler, clients, disturber)
        found.facts["requests"] = f"{len(trace)} in {moments[2] - moments[1]:.1f} s"
        found.facts["disturbances"] = ", ".join(f"{n} {what}" for what, n in disturber.done.items())
        _judge_pinned(found, steady.stop(), moments, compared=quiet > 0)
        server.signal()
        if server.process.wait(60) != 0:
            found.problems.append(f"the server ended with status {server.process.returncode}")
    except Exception:
        print(server.last_words())
        raise
    finally:
        if steady is not None:
            steady.kill()
        server.kill()
    return found


def _after(seconds: float) -> float:
    """Return the moment after a pause."""
    time.sleep(seconds)
    return time.monotonic()


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


def _judge_pinned(
    found: Found, answers: Answers, moments: Sequence[float], *, compared: bool
) -> None:
    """Compare the pinned model while others load, and alone.

    moments   of: first quiet time, its end and the first load, the last load, second quiet time, its end
    """
    begins, loads, ends, again, last = moments
    found.problems += answers.failures[:5]
    alone = answers.between(begins, loads) + answers.between(again, last)
    beside = answers.between(loads, ends)
    found.facts["the pinned model alone"] = _latencies(alone)
    found.facts["the pinned model under loads"] = _latencies(beside)
    if compared and min(len(alone), len(beside)) < LEAST_TIMES:
        found.problems.append(f"fewer than {LEAST_TIMES} requests for the pinned model: no p99")
    elif compared:
        ratio = float(np.percentile(beside, 99) / np.percentile(alone, 99))
        found.facts["the p99 of the pinned model"] = f"{ratio:.2f} times that alone"
        if ratio > P99_RATIO:
            found.problems.append(f"loads of others make the p99 {ratio:.2f} times as long")


def _latencies(seconds: Sequence[float]) -> str:
    if not seconds:
        return "no requests"
    median, p99 = np.percentile(seconds, [50, 99]) * 1e3
    return f"median {median:.2f} ms, p99 {p99:.2f} ms in {len(seconds)} requests"


def _judge(
    found: Found,
    server: Server,
    trace: Sequence[tuple[str, bool]],
    sizes: dict[str, int],
    budget: int,
    sampler: Sampler,
    clients: Clients,
    disturber: Disturber,
) -> None:
    found.results = clients.results
    if clients.failures:
        found.problems.append(f"{len(clients.failures)} failures, such as {clients.failures[:3]}")
    dead, kills = clients.results["with a killed process"], disturber.done["killed processes"]
    if dead > kills * clients.threads:
        found.problems.append(
            f"{dead} requests were with a killed process, of which there were {kills}"
        )
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
        f"at most {_mib(most)} in {len(sampler.samples)} samples, at most {sampler.longest_s:.2f} s apart; "
        f"budget {_mib(budget)}, all models {_mib(sum(sizes.values()))}"
    )
    if most > budget + max(TOLERANCE * budget, TOLERANCE_BYTES):
        found.problems.append(f"the kernel counts {_mib(most)}, the budget is {_mib(budget)}")


def _mib(size: int) -> str:
    return f"{size / 2**20:.0f} MiB"


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


def _post(server: Server, path: str, body: bytes = b"{}") -> bytes:
    request = urllib.request.Request(
        f"http://localhost:{server.ports.http}{path}", data=body, method="POST"
    )
    with urllib.request.urlopen(request, timeout=120) as response:
        found: bytes = response.read()
    return found
