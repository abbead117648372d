"""What the ways to a model on Ray cost, beside a deployment of Ray's own with onnxruntime and @serve.batch.

    python plugins/ray/benchmarks/paths.py [--seconds 5] [--rounds 3] [--clients 32]

The model is `digits` of examples/models, a request has one row. In each round, each way is measured in turn,
with one client for p50 and p99, then with many, each of which sends its next request after a response:

    requests/s            of all clients
    requests/s per core   per second of processor time of all processes of Ray; the clients' is not in it

The rows are medians of the rounds. Nothing else should run on the machine.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import socket
import statistics
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import grpc.aio
import numpy as np
import ray
from core_ray import CoreDeployment
from ray import serve
from starlette.requests import Request
from tritonclient.grpc import service_pb2

MODELS = Path(__file__).parents[3] / "examples" / "models"
ONNX = MODELS / "digits" / "1" / "model.onnx"
PIXELS = np.random.default_rng(0).random((1, 8, 8), np.float32)
TICKS_PER_S = os.sysconf("SC_CLK_TCK")
METHOD = "/inference.GRPCInferenceService/ModelInfer"

Ask = Callable[[], Awaitable[Any]]
"""Send one request, and return when its response is here. Raises if it fails."""


@dataclass(frozen=True)
class Figures:
    """One round of one way."""

    p50_ms: float
    p99_ms: float
    rate: float
    per_core: float


@serve.deployment(max_ongoing_requests=1000)
class OnnxRuntime:
    """The same model as users of Ray Serve write it: a session, and @serve.batch."""

    def __init__(self, path: str):
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        self.session = onnxruntime.InferenceSession(path, options)

    @serve.batch(max_batch_size=64, batch_wait_timeout_s=0.00025)
    async def rows(self, pixels: list[np.ndarray]) -> list[np.ndarray]:
        (found,) = self.session.run(["probabilities"], {"pixels": np.concatenate(pixels)})
        return list(found)

    async def infer(self, pixels: np.ndarray) -> np.ndarray:
        return await self.rows(pixels)

    async def __call__(self, request: Request) -> list[float]:
        body = await request.body()
        found = await self.rows(np.frombuffer(body, np.float32).reshape(1, 8, 8))
        return found.tolist()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=5, help="of each measurement")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--clients", type=int, default=32)
    flags = parser.parse_args()
    http_port, grpc_port = free_port(), free_port()
    ray.init(address="local", num_cpus=4, include_dashboard=False, log_to_driver=False)
    serve.start(
        http_options={"host": "127.0.0.1", "port": http_port},
        grpc_options={"port": grpc_port, "grpc_servicer_functions": ["core_ray:add_v2"]},
    )
    try:
        asyncio.run(measure(flags, http_port, grpc_port))
    finally:
        serve.shutdown()
        ray.shutdown()


async def measure(flags: argparse.Namespace, http_port: int, grpc_port: int) -> None:
    models, session = await asyncio.to_thread(deployed)
    ports = await models.ports.remote()
    found: dict[str, list[Figures]] = {}
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as http:
        ways = {
            "core: Serve's HTTP proxy": over_http(http, http_port, "/core"),
            "core: Serve's gRPC proxy": over_grpc(grpc_port),
            "core: by handle": lambda: models.infer.remote("digits", {"pixels": PIXELS}),
            "core: HTTP port of the replica": over_http(http, ports["http"], ""),
            "core: gRPC port of the replica": over_grpc(ports["grpc"]),
            "onnxruntime: Serve's HTTP proxy": bytes_over_http(http, http_port),
            "onnxruntime: by handle": lambda: session.infer.remote(PIXELS),
        }
        for way in ways.values():
            await way()
        for number in range(flags.rounds):
            for name, way in ways.items():
                found.setdefault(name, []).append(await figures(way, flags))
                print(f"round {number + 1}: {name}: {found[name][-1]}", flush=True)
    print(table(found, flags))


def deployed() -> tuple[Any, Any]:
    """Run both applications; return their handles."""
    bound = CoreDeployment.bind(
        model_repository=str(MODELS),
        model_control_mode="explicit",
        load_model="digits",
        http_port=0,
        grpc_port=0,
        http_address="127.0.0.1",
        grpc_address="127.0.0.1",
    )
    models = serve.run(bound, name="core", route_prefix="/core")
    session = serve.run(OnnxRuntime.bind(str(ONNX)), name="onnxruntime", route_prefix="/own")
    return models, session


def over_http(http: aiohttp.ClientSession, port: int, prefix: str) -> Ask:
    """Ask by the protocol v2, with binary tensors in both directions."""
    tensor = {"name": "pixels", "shape": [1, 8, 8], "datatype": "FP32"}
    tensor["parameters"] = {"binary_data_size": PIXELS.nbytes}
    head = json.dumps({"inputs": [tensor], "parameters": {"binary_data_output": True}}).encode()
    headers = {"Inference-Header-Content-Length": str(len(head))}
    url, body = f"http://127.0.0.1:{port}{prefix}/v2/models/digits/infer", head + PIXELS.tobytes()

    async def ask() -> bytes:
        async with http.post(url, data=body, headers=headers) as response:
            response.raise_for_status()
            return await response.read()

    return ask


def bytes_over_http(http: aiohttp.ClientSession, port: int) -> Ask:
    async def ask() -> bytes:
        async with http.post(f"http://127.0.0.1:{port}/own", data=PIXELS.tobytes()) as response:
            response.raise_for_status()
            return await response.read()

    return ask


def over_grpc(port: int) -> Ask:
    request = service_pb2.ModelInferRequest(model_name="digits")
    request.inputs.add(name="pixels", datatype="FP32", shape=[1, 8, 8])
    request.raw_input_contents.append(PIXELS.tobytes())
    call = grpc.aio.insecure_channel(f"127.0.0.1:{port}").unary_unary(METHOD)
    data, metadata = request.SerializeToString(), (("application", "core"),)

    async def ask() -> Any:
        return await call(data, metadata=metadata)

    return ask


async def figures(ask: Ask, flags: argparse.Namespace) -> Figures:
    alone_s = await clients(ask, 1, flags.seconds)
    before_s = processor_s()
    together_s = await clients(ask, flags.clients, flags.seconds)
    used_s = processor_s() - before_s
    return Figures(
        1000 * quantile(alone_s, 0.5),
        1000 * quantile(alone_s, 0.99),
        len(together_s) / flags.seconds,
        len(together_s) / used_s,
    )


async def clients(ask: Ask, number: int, seconds: float) -> list[float]:
    """Run clients side by side; return the seconds that each response took."""
    end_s, taken_s = time.perf_counter() + seconds, []

    async def client() -> None:
        while (begun_s := time.perf_counter()) < end_s:
            await ask()
            taken_s.append(time.perf_counter() - begun_s)

    await asyncio.gather(*(client() for _ in range(number)))
    return taken_s


def quantile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(int(share * len(ordered)), len(ordered) - 1)]


def processor_s() -> float:
    """Return the seconds that all processes below this one have used: those of Ray."""
    parents, used_s = {}, {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it has ended
        parents[int(folder.name)] = int(fields[1])
        used_s[int(folder.name)] = (int(fields[11]) + int(fields[12])) / TICKS_PER_S
    own, total_s = os.getpid(), 0.0
    for process, seconds in used_s.items():
        above = parents[process]
        while above not in (0, own):
            above = parents.get(above, 0)
        total_s += seconds if above == own else 0.0
    return total_s


def table(found: dict[str, list[Figures]], flags: argparse.Namespace) -> str:
    rows = [
        f"| way | p50, 1 client | p99 | requests/s, {flags.clients} clients | requests/s per core |",
        "|---|---|---|---|---|",
    ]
    for name, rounds in found.items():
        p50, p99, rate, per_core = (
            statistics.median(getattr(each, field) for each in rounds)
            for field in ("p50_ms", "p99_ms", "rate", "per_core")
        )
        rows.append(f"| {name} | {p50:.2f} ms | {p99:.2f} ms | {rate:.0f} | {per_core:.0f} |")
    return "\n".join(rows)


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


if __name__ == "__main__":
    main()
