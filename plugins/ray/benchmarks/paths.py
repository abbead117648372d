"""What the ways to a model on Ray cost, beside deployments of Ray's own with onnxruntime.

    python plugins/ray/benchmarks/paths.py [--seconds 4] [--rounds 3] [--clients 32]

The model is `digits` of examples/models, a request has one row. In each round, each way is measured in turn,
with one client, then with many, each of which sends its next request after a response:

    p50, p99              of the latencies: those of one client are what the way costs; many clients also
                          wait for each other
    requests/s            of all clients
    requests/s per core   per second of processor time of all processes of Ray; the clients' is not in it.
                          A call by handle chooses its replica in the client: that part is not in it either

Serve reads its kind of ingress once, so each has a process and a cluster of its own, one after the other:
its Python proxies, then HAProxy in front of direct ports of the replicas. The rows are medians of the rounds;
they are printed as a table of Markdown. It takes up to nine minutes. Nothing else should run on the machine.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import random
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import aiohttp
import grpc.aio
import numpy as np
import ray
from core_ray import CoreDeployment
from figures import Figures, figures, medians, table
from ray import serve
from starlette.requests import Request
from ways import PIXELS, Ask, by_handle, bytes_over_http, over_grpc, over_http

MODELS = Path(__file__).parents[3] / "examples" / "models"
PROXIES, HAPROXY = "proxies", "haproxy"  # kinds of Serve's ingress
PREFIXES = {"onnxruntime": "/plain", "onnxruntime with @serve.batch": "/batched"}
DIRECT_PORTS = 100  # of each protocol, from which Serve's servers in the replicas take theirs
PATIENCE_S = 180  # for the first response of a way
ONNX = MODELS / "digits" / "1" / "model.onnx"
ONE_THREAD = {"enable-global-threadpool": "1", "intra_op_thread_count": "1"}


class OnnxRuntime:
    """The same model as users of Ray Serve write it: a session, and @serve.batch if `batches`."""

    def __init__(self, path: str, batches: bool):
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        self.session = onnxruntime.InferenceSession(path, options)
        self.batches = batches

    @serve.batch(max_batch_size=64, batch_wait_timeout_s=0.00025)
    async def rows(self, pixels: list[np.ndarray]) -> list[np.ndarray]:
        return list(self.run(np.concatenate(pixels)))

    def run(self, pixels: np.ndarray) -> np.ndarray:
        (found,) = self.session.run(["probabilities"], {"pixels": pixels})
        return found

    async def infer(self, pixels: np.ndarray) -> np.ndarray:
        return await self.rows(pixels) if self.batches else self.run(pixels)[0]

    async def __call__(self, request: Request) -> list[float]:
        body = await request.body()
        found = await self.infer(np.frombuffer(body, np.float32).reshape(1, 8, 8))
        return found.tolist()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=4, help="of each measurement")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--clients", type=int, default=32)
    parser.add_argument("--ingress", choices=(PROXIES, HAPROXY), help=argparse.SUPPRESS)
    flags = parser.parse_args()
    if flags.ingress:
        print(json.dumps(one_ingress(flags)))
        return
    found = {name: row for kind in (PROXIES, HAPROXY) for name, row in in_a_process(kind).items()}
    print(table(found, flags.clients))


def in_a_process(ingress: str) -> dict[str, list[float]]:
    """Measure the ways of one kind of ingress in a process of its own, whose environment Serve reads."""
    done = subprocess.run(
        [sys.executable, *sys.argv, f"--ingress={ingress}"],
        env={**os.environ, **environment(ingress)},
        stdout=subprocess.PIPE,
        check=True,
        text=True,
    )
    measured: dict[str, list[float]] = json.loads(done.stdout.splitlines()[-1])
    return measured


def environment(ingress: str) -> dict[str, str]:
    """Return Serve's variables. No port is a default: other clusters may run on this machine.

    Of a range, Serve takes ports that are free, and never the last one.
    """
    first_http = free_port()
    first_grpc = first_http + DIRECT_PORTS
    return {
        "RAY_AUTH_MODE": "disabled",
        "RAY_SERVE_PROXY_READY_CHECK_TIMEOUT_S": "120",
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_SERVE_DIRECT_INGRESS_MIN_DRAINING_PERIOD_S": "0",
        "RAY_SERVE_DIRECT_INGRESS_MIN_HTTP_PORT": str(first_http),
        "RAY_SERVE_DIRECT_INGRESS_MAX_HTTP_PORT": str(first_grpc),
        "RAY_SERVE_DIRECT_INGRESS_MIN_GRPC_PORT": str(first_grpc),
        "RAY_SERVE_DIRECT_INGRESS_MAX_GRPC_PORT": str(first_grpc + DIRECT_PORTS),
        "RAY_SERVE_HAPROXY_METRICS_PORT": str(free_port()),
        "RAY_SERVE_HAPROXY_STATS_PORT": str(free_port()),
        "RAY_SERVE_ENABLE_HA_PROXY": str(int(ingress == HAPROXY)),
    }


def one_ingress(flags: argparse.Namespace) -> dict[str, list[float]]:
    """Start Ray, measure the ways of one kind of ingress, and return name → its row of the table."""
    http_port, grpc_port = free_port(), free_port()
    ray.init(address="local", num_cpus=4, include_dashboard=False, log_to_driver=False)
    serve.start(
        http_options={"host": "127.0.0.1", "port": http_port},
        grpc_options={"port": grpc_port, "grpc_servicer_functions": ["core_ray:add_v2"]},
    )
    try:
        return asyncio.run(measure(flags, http_port, grpc_port))
    finally:
        serve.shutdown()
        ray.shutdown()


async def measure(
    flags: argparse.Namespace, http_port: int, grpc_port: int
) -> dict[str, list[float]]:
    models, sessions = await asyncio.to_thread(deployed)
    found: dict[str, list[Figures]] = {}
    connector, timeout = aiohttp.TCPConnector(limit=0), aiohttp.ClientTimeout(total=60)
    # Clients of the protocol do not ask for compressed responses either, unless they are told to.
    plain = {"skip_auto_headers": ["Accept-Encoding"]}
    async with aiohttp.ClientSession(connector=connector, timeout=timeout, **plain) as http:
        if flags.ingress == HAPROXY:
            direct = await direct_port(http), await direct_grpc_port()
            ways = behind_haproxy(http, http_port, grpc_port, direct, sessions)
        else:
            ports = await models.ports.remote()
            ways = behind_proxies(http, http_port, grpc_port, models, ports, sessions)
        for name, way in ways.items():
            await first_response(name, way)
        for number in range(flags.rounds):
            for name, way in ways.items():
                measured = await figures(way, flags.clients, flags.seconds)
                found.setdefault(name, []).append(measured)
                print(f"round {number + 1}: {name}: {found[name][-1]}", file=sys.stderr, flush=True)
    return {name: medians(rounds) for name, rounds in found.items()}


def behind_proxies(
    http: aiohttp.ClientSession,
    http_port: int,
    grpc_port: int,
    models: Any,
    ports: dict[str, int],
    sessions: dict[str, Any],
) -> dict[str, Ask]:
    ways = {
        "core: Serve's HTTP proxy": over_http(http, http_port, "/core"),
        "core: Serve's gRPC proxy": over_grpc(grpc_port),
        "core: by handle": by_handle(models, "digits", {"pixels": PIXELS}),
        "core: HTTP port of the replica": over_http(http, ports["http"], ""),
        "core: gRPC port of the replica": over_grpc(ports["grpc"]),
    }
    for name, session in sessions.items():
        ways[f"{name}: Serve's HTTP proxy"] = bytes_over_http(http, http_port, PREFIXES[name])
        ways[f"{name}: by handle"] = by_handle(session, PIXELS)
    return ways


def behind_haproxy(
    http: aiohttp.ClientSession,
    http_port: int,
    grpc_port: int,
    direct: tuple[int, int],
    sessions: dict[str, Any],
) -> dict[str, Ask]:
    ways = {
        "core: Serve's HAProxy, HTTP": over_http(http, http_port, "/core"),
        "core: Serve's HAProxy, gRPC": over_grpc(grpc_port),
        "core: direct HTTP port of Serve": over_http(http, direct[0], "/core"),
        "core: direct gRPC port of Serve": over_grpc(direct[1]),
    }
    for name in sessions:
        ways[f"{name}: Serve's HAProxy, HTTP"] = bytes_over_http(http, http_port, PREFIXES[name])
    return ways


def deployed() -> tuple[Any, dict[str, Any]]:
    """Run the applications. Return the handle of the models, and name → handle of Ray's own deployments."""
    bound = CoreDeployment.bind(
        model_repository=str(MODELS),
        model_control_mode="explicit",
        load_model="digits",
        backend_config={"onnxruntime": ONE_THREAD},  # as that of OnnxRuntime
        http_port=0,
        grpc_port=0,
        http_address="127.0.0.1",
        grpc_address="127.0.0.1",
    )
    models = serve.run(bound, name="core", route_prefix="/core")
    own = serve.deployment(OnnxRuntime, max_ongoing_requests=1000)
    sessions = {}
    for name in PREFIXES:
        bound = own.bind(str(ONNX), name != "onnxruntime")
        sessions[name] = serve.run(bound, name=name, route_prefix=PREFIXES[name])
    return models, sessions


async def direct_port(http: aiohttp.ClientSession) -> int:
    """Return the port at which Serve's HTTP server in the replica of the models listens."""
    for port in direct_range("HTTP"):
        with contextlib.suppress(aiohttp.ClientError, asyncio.TimeoutError, TypeError):
            async with http.get(f"http://127.0.0.1:{port}/-/routes") as response:
                if "/core" in await response.json():
                    return port
    raise RuntimeError("none of Serve's direct HTTP ports is that of the models")


async def direct_grpc_port() -> int:
    """Return the port at which Serve's gRPC server in the replica of the models listens."""
    for port in direct_range("GRPC"):
        with contextlib.suppress(grpc.aio.AioRpcError):  # closed, or that of another application
            await over_grpc(port)()
            return port
    raise RuntimeError("none of Serve's direct gRPC ports is that of the models")


def direct_range(protocol: str) -> range:
    """Return the ports from which Serve takes; it never takes the last one."""
    names = (f"RAY_SERVE_DIRECT_INGRESS_{most}_{protocol}_PORT" for most in ("MIN", "MAX"))
    return range(*(int(os.environ[name]) for name in names))


async def first_response(name: str, way: Ask) -> None:
    """Ask until the way answers: HAProxy learns of replicas later than Serve."""
    end_s = time.monotonic() + PATIENCE_S
    while True:
        try:
            await way()
            return
        except (aiohttp.ClientError, asyncio.TimeoutError, grpc.aio.AioRpcError) as error:
            if time.monotonic() > end_s:
                raise RuntimeError(
                    f"{name} does not answer after {PATIENCE_S} s: {error!r}"
                ) from None
            await asyncio.sleep(0.5)


def free_port() -> int:
    """Return a free port that neither Ray nor the system chooses for a connection meanwhile."""
    while True:
        port = random.randrange(20_000, 30_000)
        with socket.socket() as one, contextlib.suppress(OSError):
            one.bind(("0.0.0.0", port))
            return port


if __name__ == "__main__":
    main()
