"""A soak: models, a server on a quarter of their memory, a Zipf trace, and what came of it."""

from __future__ import annotations

import os
import random
import time
import urllib.request
from pathlib import Path

from soak.server import Server

from memory_budget.clients import Clients
from memory_budget.disturber import KILLS, Disturber, post
from memory_budget.judge import (
    Found,
    judge_disturbances,
    judge_hit_rate,
    judge_memory,
    judge_pinned,
    judge_requests,
)
from memory_budget.models import LOADS, STAYS, first_of, write_models
from memory_budget.sampler import Sampler
from memory_budget.steady import BODY, Steady

WARM_S, SETTLE_S = 1.0, 1.0  # before a quiet time
ZIPF = 1.1
_MOST_A_SECOND = 2_000  # requests: more than any server of this soak answers
PART = 4  # the budget is this part of what all models take


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
        post(server, "/v2/models/pinned/infer", BODY)  # loads the library of ONNX Runtime, too
        sampler = Sampler(server.pid, sizes["pinned"])
        steady = Steady(server.ports.http, "pinned", first_of("pinned", models))
        if apart:
            os.sched_setaffinity(steady.pid, {first})
            # A load on the same processor may hold the server's lock: no thread of this program interrupts
            # it. Threads inherit this value when they start.
            os.nice(19)
        sampler.start()
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
        found.facts["requests"] = f"{len(trace)} in {moments[2] - moments[1]:.1f} s"
        found.results = clients.results
        judge_requests(found, clients.failures, disturber.done[KILLS] * threads)
        judge_disturbances(
            found,
            disturber.done,
            disturber.failures,
            disturber.error,
            seconds=seconds,
            kills=bool(python_models),
        )
        loads = _metric(server, "core_model_loads_on_request", 'result="success"')
        judge_hit_rate(found, disturber.merged(trace), loads, sizes, budget)
        judge_memory(
            found,
            sampler.samples,
            sampler.longest_s,
            budget,
            sum(sizes.values()),
            due=sampler.due,
            seconds=seconds,
        )
        judge_pinned(found, steady.stop(), moments, compared=quiet > 0)
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
