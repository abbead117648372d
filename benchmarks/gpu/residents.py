"""What stays on the GPU and what leaves it: reloads, a model that runs out of memory, and metrics."""

from __future__ import annotations

import os
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.gpu import models
from benchmarks.gpu.networks import BY_NAME, DEVICE, file_of

MIB = 1 << 20
HUNGRY = """import torch


class Hungry(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.one = torch.nn.Parameter(torch.ones(1))

    def forward(self, x):
        return (torch.ones(1 << 38, device=x.device) * self.one)[: x.shape[0]] + x
"""
HUNGRY_CONFIG = """backend: "pytorch"
runtime: "model.py"
input [ { name: "x" data_type: TYPE_FP32 dims: [ 4 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ 4 ] } ]
instance_group [ { kind: KIND_GPU } ]
"""


def used_mib() -> float:
    """Return the memory in use on the GPU, by the driver."""
    import torch

    free, total = torch.cuda.mem_get_info()
    return float((total - free) / MIB)


def resident_mib() -> float:
    """Return the resident memory of this process."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / MIB


def reloads(folder: Path, seconds: float) -> Iterator[dict[str, Any]]:
    """Load a model with graphs, run it, and unload it, again and again; yield memory by thirds.

    seconds   it takes longer if there have been fewer than three loads by then
    """
    import core

    network = BY_NAME["resnet50"]
    file = file_of(network, "torchscript", folder / "file", DEVICE)
    models.write(folder / "models", network, "torchscript", 1, file)
    inputs = {"INPUT__0": network.sample(8).numpy()}
    seen: list[tuple[float, float]] = []
    with core.Server(
        model_repository=str(folder / "models"), model_control_mode="explicit"
    ) as server:
        end = time.monotonic() + seconds
        while time.monotonic() < end or len(seen) < 3:
            server.load(network.name)
            for _ in range(6):
                server.infer(network.name, inputs)
            _unload(server, network.name)
            seen.append((used_mib(), resident_mib()))
    third = len(seen) // 3
    parts = [seen[third : 2 * third], seen[2 * third :]]
    gpu, host = ([max(each[k] for each in part) for part in parts] for k in (0, 1))
    yield {
        "reloads": len(seen),
        "seconds": seconds,
        "gpu_mib": gpu,
        "resident_mib": host,
        "gpu_growth_mib": gpu[1] - gpu[0],
        "resident_growth_mib": host[1] - host[0],
    }


def out_of_memory(folder: Path) -> Iterator[dict[str, Any]]:
    """Run a model that asks for 1 TB on the GPU beside another, and load a third afterwards."""
    import numpy as np

    import core

    network = BY_NAME["encoder"]
    file = file_of(network, "torchscript", folder / "file", DEVICE)
    models.write(folder / "models", network, "torchscript", 1, file)
    hungry = folder / "models" / "hungry"
    (hungry / "1").mkdir(parents=True)
    (hungry / "1" / "model.py").write_text(HUNGRY)
    (hungry / "config.pbtxt").write_text(HUNGRY_CONFIG)
    inputs = {"INPUT__0": network.sample(4).numpy()}
    with core.Server(
        model_repository=str(folder / "models"), model_control_mode="explicit"
    ) as server:
        server.load("hungry")
        server.load(network.name)
        before = server.infer(network.name, inputs)["OUTPUT__0"]
        errors = []
        for _ in range(3):
            try:
                server.infer("hungry", {"x": np.ones(4, np.float32)})
            except core.CoreError as error:
                errors.append(str(error))
        after = server.infer(network.name, inputs)["OUTPUT__0"]
        _unload(server, network.name)
        server.load(network.name)
        again = server.infer(network.name, inputs)["OUTPUT__0"]
    yield {
        "refused": len(errors),
        "refusal": errors[0][:200] if errors else "",
        "others_answer": bool(np.array_equal(before, after)),
        "next_loads": bool(np.allclose(before, again, atol=1e-2)),
    }


METRICS = {
    "nv_gpu_memory_total_bytes": ("memory.total", float(MIB)),
    "nv_gpu_memory_used_bytes": ("memory.used", float(MIB)),
    "nv_gpu_power_limit": ("power.limit", 1.0),
    "nv_gpu_power_usage": ("power.draw", 1.0),
    "nv_gpu_utilization": ("utilization.gpu", 0.01),
}


def metrics(folder: Path) -> Iterator[dict[str, Any]]:
    """Compare the metrics of a server with what nvidia-smi reports at the same time."""
    import core

    (folder / "models").mkdir(parents=True)
    with core.Server(model_repository=str(folder / "models")) as server:
        port = server.serve(metrics_port=0)["metrics"]
        time.sleep(2.5)
        names = ",".join(name for name, _ in METRICS.values())
        command = ["nvidia-smi", f"--query-gpu={names}", "--format=csv,noheader,nounits"]
        shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        page = urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10).read()
    yield from compared(page.decode(), shown.splitlines()[0])


def compared(page: str, shown: str) -> Iterator[dict[str, Any]]:
    """Yield a row for each metric of a page; `shown` is the line of nvidia-smi about the same GPU.

    difference   relative to nvidia-smi; absolute for the utilization, which may be 0
    """
    values = dict(zip(METRICS, shown.split(", "), strict=True))
    for line in page.splitlines():
        name = line.partition("{")[0]
        if name not in METRICS:
            continue
        ours = float(line.rsplit(" ", 1)[1])
        if not values[name].replace(".", "", 1).isdigit():  # "[N/A]": this GPU does not say
            yield {"metric": name, "core": ours, "nvidia_smi": values[name]}
            continue
        theirs = float(values[name]) * METRICS[name][1]
        whole = 1.0 if name == "nv_gpu_utilization" else theirs or 1.0
        difference = abs(ours - theirs) / whole
        yield {"metric": name, "core": ours, "nvidia_smi": theirs, "difference": difference}


def _unload(server: Any, name: str) -> None:
    """Unload a model, and wait until nothing of it is loaded."""
    server.unload(name)
    while server.ready(name) or any(
        each["name"] == name and each.get("state") == "UNLOADING" for each in server.index()
    ):
        time.sleep(0.001)
