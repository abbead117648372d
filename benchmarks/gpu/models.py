"""PyTorch models in each format, batch size and number of instances, beside a bare loop of the same file.

The loop has CUDA graphs and overlapped copies. Its inputs are in pinned memory already; the columns with
`filled` compare with a loop that first copies them there, as the server has to. The server gets batches in
host memory from CLIENTS threads in this process, each sending its next batch after the previous answer. Both
take turns.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any
from unittest.mock import patch

from backend_pytorch import instance

from benchmarks.gpu.bare import BareLoop
from benchmarks.gpu.networks import DEVICE, MOST_ROWS, NETWORKS, Network, file_of, loaded

CLIENTS = 4  # for each instance: one batch computes, one is copied, the others wait
BATCHES = (1, 8, 64)
INSTANCES = (2, 8)
PARTS = ("queue", "compute_input", "compute_infer", "compute_output")
CONFIG = """backend: "pytorch"
max_batch_size: {rows}
instance_group [ {{ kind: KIND_GPU count: {count} }} ]
optimization {{ cuda {{ graphs: true busy_wait_events: {polls} }} }}
"""


@dataclass(frozen=True)
class Case:
    """Models of the server.

    polls      busy_wait_events
    networks   names
    ahead      batches that an instance may begin before the first one is done
    """

    kind: str
    instances: int = 1
    polls: bool = False
    batches: tuple[int, ...] = BATCHES
    networks: tuple[str, ...] = ("resnet50", "encoder")
    ahead: int = instance.AHEAD


ONE = ("resnet50",)
# Section → its cases, the most important first: what takes minutes to compile comes last.
TABLES = {
    "models": [Case(kind) for kind in ("torchscript", "exported", "module")],
    "instances": [
        *(Case("torchscript", count, batches=(8,), networks=ONE) for count in INSTANCES),
        Case("torchscript", polls=True, batches=(1, 8), networks=ONE),
        Case("torchscript", batches=(8, 64), networks=ONE, ahead=instance.AHEAD + 1),
    ],
    "aotinductor": [Case("aotinductor")],
}


def measure(
    folder: Path, seconds: float, rounds: int, cases: Sequence[Case]
) -> Iterator[dict[str, Any]]:
    """Yield a row for each network, case and batch. `folder` may hold packages: see networks.file_of."""
    for case in cases:
        for network in (each for each in NETWORKS if each.name in case.networks):
            try:
                yield from _measured(folder, network, case, seconds, rounds)
            except Exception as error:  # the other cases are measured
                yield {"network": network.name, **_described(case), "error": _text(error)}


def _described(case: Case) -> dict[str, Any]:
    found: dict[str, Any] = {"format": case.kind, "instances": case.instances}
    return found | {"polls": case.polls, "ahead": case.ahead}


def _text(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"[:500]


def _measured(
    folder: Path, network: Network, case: Case, seconds: float, rounds: int
) -> Iterator[dict[str, Any]]:
    import core

    kind, count = case.kind, case.instances
    file = file_of(network, kind, folder / f"{network.name}-{kind}", DEVICE)
    repository = folder / f"serve-{network.name}-{kind}-{count}-{case.polls}-{case.ahead}"
    write(repository, network, kind, count, file, polls=case.polls)
    run = loaded(network, kind, file, DEVICE)
    with (
        patch.object(instance, "AHEAD", case.ahead),
        core.Server(model_repository=str(repository)) as server,
    ):
        for rows in case.batches:
            row: dict[str, Any] = {"network": network.name, **_described(case), "batch": rows}
            try:
                row |= _compared(server, network, run, rows, count, seconds, rounds)
            except Exception as error:  # the other rows are measured
                row["error"] = _text(error)
            yield row


def write(
    repository: Path, network: Network, kind: str, count: int, file: Path, *, polls: bool = False
) -> None:
    """Write a repository with one model: the file, and a configuration with graphs."""
    version = repository / network.name / "1"
    version.mkdir(parents=True)
    (version / file.name).symlink_to(file.resolve())
    runtime = 'runtime: "model.py"\n' if kind == "module" else ""
    config = (
        CONFIG.format(rows=MOST_ROWS, count=count, polls=str(polls).lower())
        + runtime
        + network.inputs
    )
    (repository / network.name / "config.pbtxt").write_text(config)


def _compared(
    server: Any, network: Network, run: Any, rows: int, count: int, seconds: float, rounds: int
) -> dict[str, Any]:
    host = network.sample(rows)
    loop = BareLoop(run, host)
    inputs = {"INPUT__0": host.numpy()}

    def ask() -> Any:
        return server.infer(network.name, inputs)

    clients = CLIENTS * count
    served(ask, 0.3, clients, rows)
    begin = _parts(server, network.name)
    turns = [
        (loop.rate(seconds), served(ask, seconds, clients, rows), loop.rate(seconds, fills=True))
        for _ in range(rounds)
    ]
    middle = _parts(server, network.name)
    alone = [_latencies(loop, ask) for _ in range(rounds)]
    end = _parts(server, network.name)
    return {
        "bare_per_s": median(bare for bare, _, _ in turns),
        "served_per_s": median(each for _, each, _ in turns),
        "ratio": median(each / bare for bare, each, _ in turns),
        "ratio_filled": median(each / filled for _, each, filled in turns),
        "bare_p50_ms": 1e3 * median(bare for bare, _, _ in alone),
        "added_p50_ms": 1e3 * median(each - bare for bare, each, _ in alone),
        "added_filled_p50_ms": 1e3 * median(each - filled for _, each, filled in alone),
        "largest_difference": _difference(ask, run, host),
        **_each(begin, middle, "busy"),
        **_each(middle, end, "alone"),
    }


def _each(before: dict[str, int], after: dict[str, int], load: str) -> dict[str, float]:
    """Return the microseconds of each part of a request's way, between two results of _parts."""
    requests = after["requests"] - before["requests"]
    return {f"{part}_{load}_us": (after[part] - before[part]) / requests / 1e3 for part in PARTS}


def _parts(server: Any, model: str) -> dict[str, int]:
    """Return the number of requests of a model so far, and the nanoseconds of each part of their way."""
    (found,) = server.statistics(model)
    stats = found["inference_stats"]
    return {"requests": stats["success"]["count"], **{part: stats[part]["ns"] for part in PARTS}}


def served(ask: Any, seconds: float, clients: int, rows: int) -> float:
    """Return rows per second of clients that each send a batch after the previous answer."""
    with ThreadPoolExecutor(clients) as pool:
        begin = time.perf_counter()
        end = begin + seconds

        def client(_: int) -> int:
            count = 0
            while time.perf_counter() < end:
                ask()
                count += 1
            return count

        runs = sum(pool.map(client, range(clients)))
        return runs * rows / (time.perf_counter() - begin)


def _latencies(loop: BareLoop, ask: Any, count: int = 60) -> tuple[float, float, float]:
    """Return the median seconds of single batches: of the loop, the server, and the loop that fills."""
    bare, found = median(loop.latencies(count)), []
    for _ in range(count):
        begin = time.perf_counter()
        ask()
        found.append(time.perf_counter() - begin)
    return bare, median(found), median(loop.latencies(count, fills=True))


def _difference(ask: Any, run: Any, host: Any) -> float:
    """Return the largest difference of an element between the server and the program."""
    import torch

    with torch.inference_mode():
        found = run(host.cuda())
    bare = found[0] if isinstance(found, list | tuple) else found
    answer = torch.from_numpy(ask()["OUTPUT__0"])
    return float((answer.float() - bare.cpu().float()).abs().max())
