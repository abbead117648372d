"""Compare shared memory with the wire: a tensor in the message, in a separate region, and in a pool.

    python -m benchmarks.shared_memory [--seconds 1] [--rounds 5]

One client sends one request at a time to a model that returns its input. The methods take turns in every
round. The figure is the median over the rounds of a method's time per request, divided by the wire's in the
same round.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import tritonclient.grpc
import tritonclient.http
from core_client import SharedMemoryPool
from tritonclient.utils import shared_memory as named

from benchmarks.servers.running import free_ports

MODEL = """
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        found = []
        for request in requests:
            x = pb_utils.get_input_tensor_by_name(request, "x")
            found.append(pb_utils.InferenceResponse([pb_utils.Tensor("y", x.as_numpy())]))
        return found
"""
CONFIG = """
backend: "python"
input [ { name: "x" data_type: TYPE_FP32 dims: [ -1 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ -1 ] } ]
parameters { key: "EXECUTION_MODE" value { string_value: "thread" } }
"""
LIBRARIES: dict[str, Any] = {"http": tritonclient.http, "grpc": tritonclient.grpc}
Ask = Callable[[], Any]


@contextmanager
def served() -> Iterator[tuple[dict[str, str], str]]:
    """Run a server with the model; yield the URL of each protocol, and the shared-memory socket."""
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "models" / "echo"
        (model / "1").mkdir(parents=True)
        (model / "config.pbtxt").write_text(CONFIG)
        (model / "1" / "model.py").write_text(MODEL)
        free = free_ports()
        ports = {"http": free.http, "grpc": free.grpc}
        command = [sys.executable, "-m", "core.serve", f"--model-repository={model.parent}"]
        command += [f"--{name}-port={port}" for name, port in ports.items()]
        command += ["--allow-metrics=false", "--allow-client-shm=true", "--log-info=false"]
        socket = f"{folder}/memory.sock"
        process = subprocess.Popen([*command, f"--shared-memory-socket={socket}"])
        try:
            urls = {name: f"127.0.0.1:{port}" for name, port in ports.items()}
            _wait(urls["http"])
            yield urls, socket
        finally:
            process.terminate()
            process.wait()


def _wait(url: str) -> None:
    with tritonclient.http.InferenceServerClient(url) as client:
        for _ in range(600):
            with suppress(OSError):
                if client.is_server_ready():
                    return
            time.sleep(0.1)
    raise TimeoutError("the server is not ready after a minute")


def wire(library: Any, client: Any, numbers: np.ndarray) -> Ask:
    """Return a request with the tensor in the messages of request and response."""

    def ask() -> Any:
        x = library.InferInput("x", numbers.shape, "FP32")
        x.set_data_from_numpy(numbers)
        return client.infer("echo", [x]).as_numpy("y")

    return ask


def region(library: Any, client: Any, numbers: np.ndarray) -> Ask:
    """Return a request that writes the tensor to a region of tritonclient and copies the result from it."""
    size, name = numbers.nbytes, uuid.uuid4().hex
    handle = named.create_shared_memory_region(name, f"/{name}", 2 * size)
    client.register_system_shared_memory(name, f"/{name}", 2 * size)

    def ask() -> Any:
        named.set_shared_memory_region(handle, [numbers])
        x, y = library.InferInput("x", numbers.shape, "FP32"), library.InferRequestedOutput("y")
        x.set_shared_memory(name, size)
        y.set_shared_memory(name, size, size)
        client.infer("echo", [x], outputs=[y])
        return named.get_contents_as_numpy(handle, np.float32, numbers.shape, size)

    ask.close = lambda: named.destroy_shared_memory_region(handle)  # type: ignore[attr-defined]
    return ask


def in_pool(client: Any, pool: SharedMemoryPool, numbers: np.ndarray) -> Ask:
    """Return a request with the tensor in a pool's array; the client copies nothing."""
    x, y = pool.share(numbers), pool.empty(numbers.shape)

    def ask() -> Any:
        client.infer("echo", [x.input("x")], outputs=[y.output("y")])
        return y.array

    return ask


def time_of(ask: Ask, seconds: float) -> float:
    """Return the time of a request in seconds."""
    ask()
    count, begin = 0, time.perf_counter()
    while (passed := time.perf_counter() - begin) < seconds:
        ask()
        count += 1
    return passed / count


def compared(urls: dict[str, str], socket: str, protocol: str, size: int, how: Any) -> list[str]:
    """Return rows of the table: each method's time divided by the wire's."""
    library = LIBRARIES[protocol]
    numbers = np.arange(size // 4, dtype=np.float32)
    with (
        library.InferenceServerClient(urls[protocol]) as client,
        SharedMemoryPool(client) as pool,
        SharedMemoryPool(client, socket=socket) as lent,
    ):
        ways = {
            "wire": wire(library, client, numbers),
            "region": region(library, client, numbers),
            "pool": in_pool(client, pool, numbers),
            "pool, socket": in_pool(client, lent, numbers),
        }
        for ask in ways.values():
            assert np.array_equal(ask(), numbers)
        ratios: dict[str, list[float]] = {name: [] for name in ways}
        for _ in range(how.rounds):
            found = {name: time_of(ask, how.seconds) for name, ask in ways.items()}
            for name, seconds in found.items():
                ratios[name].append(seconds / found["wire"])
        client.unregister_system_shared_memory()
        ways["region"].close()  # type: ignore[attr-defined]
    return [f"{statistics.median(each):.2f}" for each in ratios.values()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=1.0, help="of each way in each round")
    parser.add_argument("--rounds", type=int, default=5)
    how = parser.parse_args()
    print("| | wire | region | pool | pool, socket |\n|---|---|---|---|---|")
    with served() as (urls, socket):
        for protocol in LIBRARIES:
            for size in (2**20, 2**24):
                row = compared(urls, socket, protocol, size, how)
                print(f"| {protocol}, {size >> 20} MiB |", " | ".join(row), "|", flush=True)


if __name__ == "__main__":
    main()
