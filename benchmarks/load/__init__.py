"""Load generators: each sends one exchange over C connections, one request at a time on each.

They run on another core than the servers. Protocol → generator:

    http-json, http-binary   wrk
    grpc                     a client on gRPC's own C++ library (grpc_client.cc)
    grpc-h2load              h2load
    perf-http, perf-grpc     perf_analyzer, if $PERF_ANALYZER names one
"""

from __future__ import annotations

from pathlib import Path

from benchmarks.load.generator import Generator
from benchmarks.load.grpc_client import GrpcClient
from benchmarks.load.h2load import H2load
from benchmarks.load.perf_analyzer import PerfAnalyzer
from benchmarks.load.wrk import Wrk

PROTOCOLS = ("http-json", "http-binary", "grpc", "grpc-h2load", "perf-http", "perf-grpc")


def generator_of(protocol: str, cache: Path, core: int) -> Generator:
    """Return the load generator of a protocol, pinned to `core`. Raises Missing if it is not installed."""
    if protocol in ("http-json", "http-binary"):
        return Wrk(core)
    if protocol == "grpc":
        return GrpcClient(core, cache)
    if protocol == "grpc-h2load":
        return H2load(core)
    return PerfAnalyzer(core, protocol.removeprefix("perf-"))


def form(protocol: str) -> str:
    """Return the form of the requests that a protocol's generator sends."""
    if protocol in ("http-json", "http-binary"):
        return protocol
    return "http-binary" if protocol == "perf-http" else "grpc"
