"""Compare the server with a bare loop on a GPU: python -m benchmarks.backends.gpu [--trace FILE]

A network of the shape of ResNet-50 in FP16, 32 images at a time; images per second of

    resident      a loop with inputs and results on the GPU: the upper limit of the GPU
    copying       a loop that copies images to the GPU, runs, and copies results back, one after the other
    served        the server, with requests of such batches from its own process, in host memory
    on the GPU    the same with images on the GPU, by DLPack, and results that stay there

They take turns, round by round; the medians of the quotients count. Then torch's profiler measures in the
server the part of the copy time in which a kernel ran. Expected: `served` within 5 % of `resident`, and
nearly all copies parallel to kernels. Without a GPU it prints the reason and ends.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median
from typing import Any

ROWS, SIDE, CLASSES = 32, 224, 1000
CLIENTS = 4  # so that the next batch waits while one computes and one is copied
NAME = "resnet50"
CONFIG = f"""backend: "pytorch"
max_batch_size: {ROWS}
input [ {{ name: "INPUT__0" data_type: TYPE_FP16 dims: [ 3, {SIDE}, {SIDE} ] }} ]
output [ {{ name: "OUTPUT__0" data_type: TYPE_FP16 dims: [ {CLASSES} ] }} ]
instance_group [ {{ kind: KIND_GPU count: 1 gpus: [ 0 ] }} ]
"""

Interval = tuple[float, float]


def network() -> Any:
    """Return a torch.nn.Module like ResNet-50 with random weights: [n, 3, side, side] → [n, classes]."""
    from torch import nn

    class Bottleneck(nn.Module):  # type: ignore[misc]  # torch is not read
        def __init__(self, width: int, inner: int, stride: int):
            super().__init__()
            outer = 4 * inner
            self.main = nn.Sequential(
                nn.Conv2d(width, inner, 1, bias=False),
                nn.BatchNorm2d(inner),
                nn.ReLU(),
                nn.Conv2d(inner, inner, 3, stride, 1, bias=False),
                nn.BatchNorm2d(inner),
                nn.ReLU(),
                nn.Conv2d(inner, outer, 1, bias=False),
                nn.BatchNorm2d(outer),
            )
            self.beside: nn.Module = nn.Identity()
            if stride != 1 or width != outer:
                self.beside = nn.Sequential(
                    nn.Conv2d(width, outer, 1, stride, bias=False), nn.BatchNorm2d(outer)
                )

        def forward(self, x: Any) -> Any:
            return nn.functional.relu(self.main(x) + self.beside(x))

    layers = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU()]
    layers.append(nn.MaxPool2d(3, 2, 1))
    width = 64
    for inner, count, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for i in range(count):
            layers.append(Bottleneck(width, inner, stride if i == 0 else 1))
            width = 4 * inner
    layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, CLASSES)]
    return nn.Sequential(*layers)


def write(folder: Path) -> None:
    """Write the model's folder: config.pbtxt, and TorchScript in FP16."""
    import torch

    torch.manual_seed(7)
    module = network().eval().half().cuda()
    version = folder / NAME / "1"
    version.mkdir(parents=True)
    (folder / NAME / "config.pbtxt").write_text(CONFIG)
    with warnings.catch_warnings(), torch.inference_mode():
        warnings.simplefilter("ignore")  # torch announces that TorchScript will not be developed
        example = torch.ones(2, 3, SIDE, SIDE, dtype=torch.half, device="cuda")
        torch.jit.save(torch.jit.trace(module, example), str(version / "model.pt"))


def bare(file: Path) -> Mapping[str, Callable[[float], float]]:
    """Return the two loops: seconds → images per second."""
    import torch

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module: Any = torch.jit.load(str(file), map_location="cuda:0")
    pinned = torch.ones(ROWS, 3, SIDE, SIDE, dtype=torch.half, pin_memory=True)
    images = pinned.cuda()

    def resident() -> None:
        module(images)

    def copying() -> None:
        module(pinned.to("cuda:0", non_blocking=True)).cpu()

    def rate(run: Callable[[], None], seconds: float) -> float:
        with torch.inference_mode():
            for _ in range(3):
                run()
            torch.cuda.synchronize()
            runs, start = 0, time.perf_counter()
            while time.perf_counter() - start < seconds:
                for _ in range(4):  # keeps the queue filled, but not much longer than the turn
                    run()
                torch.cuda.current_stream().synchronize()
                runs += 4
            return runs * ROWS / (time.perf_counter() - start)

    return {
        "resident": lambda seconds: rate(resident, seconds),
        "copying": lambda seconds: rate(copying, seconds),
    }


def served(ask: Callable[[], Any], seconds: float) -> float:
    """Return images per second of clients that each send a batch after the previous response."""
    with ThreadPoolExecutor(CLIENTS) as clients:
        list(clients.map(lambda _: ask(), range(2 * CLIENTS)))
        start = time.perf_counter()
        end = start + seconds

        def client(_: int) -> int:
            count = 0
            while time.perf_counter() < end:
                ask()
                count += 1
            return count

        runs = sum(clients.map(client, range(CLIENTS)))
        return runs * ROWS / (time.perf_counter() - start)


def watched(ask: Callable[[], Any], trace: Path) -> list[dict[str, Any]]:
    """Profile some requests, write the trace to a file, and return its events."""
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CUDA]) as profiler:
        served(ask, 0.5)
    profiler.export_chrome_trace(str(trace))
    found: list[dict[str, Any]] = json.loads(trace.read_text())["traceEvents"]
    return found


def overlap(events: Sequence[Mapping[str, Any]], direction: str) -> float:
    """Return the fraction of the copy time in which a kernel ran; 0 without copies.

    events      events of a trace of torch.profiler
    direction   "HtoD" or "DtoH"
    """
    kernels = _merged(_interval(each) for each in events if each.get("cat") == "kernel")
    copies = [
        _interval(each)
        for each in events
        if each.get("cat") == "gpu_memcpy" and direction in str(each.get("name"))
    ]
    beside = sum(
        max(0.0, min(end, to) - max(start, since)) for start, end in copies for since, to in kernels
    )
    whole = sum(end - start for start, end in copies)
    return beside / whole if whole else 0.0


def _interval(event: Mapping[str, Any]) -> Interval:
    start = float(event["ts"])
    return start, start + float(event["dur"])


def _merged(intervals: Any) -> list[Interval]:
    """Return the intervals in order, with overlapping ones merged."""
    found: list[Interval] = []
    for start, end in sorted(intervals):
        if found and start <= found[-1][1]:
            found[-1] = found[-1][0], max(end, found[-1][1])
        else:
            found.append((start, end))
    return found


def reason() -> str:
    """Return the reason why this machine cannot run the benchmark; "" if it can."""
    try:
        import torch
    except ImportError:
        return "torch is not installed"
    if torch.cuda.is_available():
        return ""
    return f"torch {torch.__version__} finds no GPU that it can use"


def measure(folder: Path, seconds: float, rounds: int, trace: Path) -> None:
    """Print the table."""
    import torch

    import core

    write(folder)
    loops = bare(folder / NAME / "1" / "model.pt")
    images = torch.ones(ROWS, 3, SIDE, SIDE, dtype=torch.half)
    on_host, on_gpu = {"INPUT__0": images.numpy()}, {"INPUT__0": images.cuda()}
    torch.cuda.synchronize()
    stays = [core.DeviceOutput("OUTPUT__0")]
    with core.Server(model_repository=str(folder)) as server:
        ways: dict[str, Callable[[float], float]] = {
            **loops,
            "served": lambda turn: served(lambda: server.infer(NAME, on_host), turn),
            "on the GPU": lambda turn: served(
                lambda: server.infer(NAME, on_gpu, outputs=stays), turn
            ),
        }
        found: list[dict[str, float]] = [
            {name: way(seconds) for name, way in ways.items()} for _ in range(rounds)
        ]
        events = watched(lambda: server.infer(NAME, on_host), trace)
    print(f"{torch.cuda.get_device_name(0)}, {ROWS} images at a time, FP16, {rounds} rounds")
    for name in ways:
        rate = median(each[name] for each in found)
        share = median(each[name] / each["resident"] for each in found)
        print(f"{name:>12} {rate:10,.0f} images/s {share:6.1%} of resident")
    for direction, what in (("HtoD", "inputs"), ("DtoH", "outputs")):
        print(f"copies of {what} beside kernels: {overlap(events, direction):.0%}")


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.backends.gpu")
    parser.add_argument("--seconds", type=float, default=2.0, help="of each turn (%(default)s)")
    parser.add_argument("--rounds", type=int, default=7, help="(%(default)s)")
    parser.add_argument("--trace", type=Path, help="file for the timeline: Chrome's format")
    chosen = parser.parse_args(arguments)
    if missing := reason():
        print(f"nothing is measured: {missing}; this benchmark needs a GPU", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory(prefix="backends-gpu-") as name:
        folder = Path(name)
        measure(
            folder / "models",
            chosen.seconds,
            chosen.rounds,
            (chosen.trace or folder / "trace.json").absolute(),
        )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
