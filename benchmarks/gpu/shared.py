"""CUDA shared memory of a client in another process: what a tensor of 16 MB adds to a request.

python -m benchmarks.gpu.shared URL    is the client, with tritonclient
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

SIZES = {"small": 1 << 10, "large": 1 << 22}  # elements of FP32
ROUNDS, CALLS = 5, 200
CONFIG = """backend: "pytorch"
input [ { name: "x" data_type: TYPE_FP32 dims: [ -1 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ -1 ] } ]
instance_group [ { kind: KIND_GPU } ]
"""


def measure(folder: Path) -> Iterator[dict[str, Any]]:
    """Yield a row for each protocol."""
    import torch

    version = folder / "models" / "next" / "1"
    version.mkdir(parents=True)
    scripted = torch.jit.trace(lambda x: x + 1, torch.ones(4))
    torch.jit.save(scripted, str(version / "model.pt"))
    (version.parent / "config.pbtxt").write_text(CONFIG)
    compute = _bare()
    for protocol, port in (("http", 18600), ("grpc", 18601)):
        command = [sys.executable, "-m", "core.serve", f"--model-repository={folder / 'models'}"]
        command += ["--http-address=127.0.0.1", "--http-port=18600", "--grpc-address=127.0.0.1"]
        command += ["--grpc-port=18601", "--allow-metrics=false", "--allow-client-shm=true"]
        log = folder / f"{protocol}.log"
        with log.open("w") as output:
            server = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
        try:
            client = [sys.executable, "-m", "benchmarks.gpu.shared", protocol, str(port)]
            done = subprocess.run(client, capture_output=True, text=True, timeout=120)
            if done.returncode:
                yield {
                    "protocol": protocol,
                    "error": done.stderr[-800:],
                    "log": log.read_text()[-400:],
                }
            else:
                yield {"protocol": protocol, "model_alone_ms": compute, **json.loads(done.stdout)}
        finally:
            server.terminate()
            server.wait(30)


def _bare() -> float:
    """Return the milliseconds that the model itself needs for 16 MB on the GPU."""
    import torch

    x = torch.ones(SIZES["large"], device="cuda")
    found = []
    for _ in range(CALLS):
        begin = time.perf_counter()
        x = x + 1
        torch.cuda.synchronize()
        found.append(time.perf_counter() - begin)
    return 1e3 * median(found)


def client(protocol: str, port: int) -> dict[str, float]:
    """Return the median milliseconds of a request for each size, and the difference."""
    import importlib

    import numpy as np
    import tritonclient.utils.cuda_shared_memory as cuda

    library = importlib.import_module(f"tritonclient.{protocol}")
    found: dict[str, list[float]] = {name: [] for name in SIZES}
    with library.InferenceServerClient(f"127.0.0.1:{port}") as connection:
        _wait(connection)
        asks = {}
        for name, count in SIZES.items():
            size = 4 * count
            region = cuda.create_shared_memory_region(name, 2 * size, 0)
            numbers = np.arange(count, dtype=np.float32)
            cuda.set_shared_memory_region(region, [numbers])
            connection.register_cuda_shared_memory(name, cuda.get_raw_handle(region), 0, 2 * size)
            x = library.InferInput("x", [count], "FP32")
            x.set_shared_memory(name, size)
            y = library.InferRequestedOutput("y")
            y.set_shared_memory(name, size, size)
            connection.infer("next", [x], outputs=[y])
            answer = cuda.get_contents_as_numpy(region, np.float32, [2 * count])[count:]
            if not np.array_equal(answer, numbers + 1):
                raise SystemExit(f"a wrong answer for {name}")
            asks[name] = partial(connection.infer, "next", [x], outputs=[y])
        for _ in range(ROUNDS):
            for name, ask in asks.items():
                times = []
                for _ in range(CALLS):
                    begin = time.perf_counter()
                    ask()
                    times.append(time.perf_counter() - begin)
                found[name].append(1e3 * median(times))
    small, large = (median(found[name]) for name in SIZES)
    return {"4_kB_ms": small, "16_MB_ms": large, "added_ms": large - small}


def _wait(connection: Any, seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while True:
        try:
            if connection.is_server_ready():
                return
        except Exception:
            if time.monotonic() > end:
                raise
        time.sleep(0.1)


if __name__ == "__main__":
    print(json.dumps(client(sys.argv[1], int(sys.argv[2]))))
