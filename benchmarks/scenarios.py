"""Scenarios: what servers are asked, and which of them can be.

command line ─► [Scenario] ─► measure.  A scenario names models of one fleet; all servers of a fleet run
at once, on one core, and are measured in turn.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from benchmarks.models.repository import many_names
from benchmarks.models.sample import SAMPLES, Sample

SMALL = ("http-json", "http-binary", "grpc", "grpc-h2load", "perf-http", "perf-grpc")
LARGE = ("http-binary", "grpc")
EVERYBODY = ("core", "triton", "mlserver", "fastapi")


@dataclass(frozen=True)
class Scenario:
    """One row of the question.

    title       for people
    models      that are asked in turn; nearly always one
    sample      key of SAMPLES
    servers     that can answer it
    protocols   in which it makes sense
    fleet       which models the servers run: "all" or "many"
    most        connections that make sense: more would only wait for each other
    instead     server → (model, sample) that it is asked in place of the scenario's
    """

    name: str
    title: str
    models: tuple[str, ...]
    sample: str
    servers: tuple[str, ...] = ("core", "triton")
    protocols: tuple[str, ...] = SMALL
    fleet: str = "all"
    most: int = 1000
    instead: Mapping[str, tuple[str, str]] = field(default_factory=dict)

    def asked_of(self, server: str) -> tuple[tuple[str, ...], Sample]:
        """The models that this server is asked, and the request with its right answer."""
        if server in self.instead:
            model, sample = self.instead[server]
            return (model,), SAMPLES[sample]()
        return self.models, SAMPLES[self.sample]()


def _of(name: str, title: str, **others: object) -> Scenario:
    return Scenario(name, title, (name,), name, **others)  # type: ignore[arg-type]


SCENARIOS = {
    scenario.name: scenario
    for scenario in (
        _of("identity", "identity, FP32[16], no batching", servers=EVERYBODY),
        _of("identity_batched", "identity, FP32[1, 16], dynamic batching"),
        _of("add_sub", "Python model add_sub, FP32[16], no batching", servers=EVERYBODY),
        _of("add_sub_batched", "Python model add_sub, FP32[1, 16], dynamic batching"),
        _of(
            "add_sub_inline",
            "Python model add_sub, FP32[16], no batching; in core within the server",
        ),
        _of(
            "add_sub_inline_batched",
            "Python model add_sub, FP32[1, 16], dynamic batching; in core within the server",
        ),
        _of(
            "mlp",
            "ONNX MLP 64 → 256 → 256 → 10, one row, dynamic batching "
            "(Triton: its C++ identity, FP32[1, 64], dynamic batching)",
            servers=EVERYBODY,
            instead={"triton": ("identity_64", "identity_64")},
        ),
        _of("identity_1mb", "identity, 1 MB", protocols=LARGE),
        _of("identity_16mb", "identity, 16 MB", protocols=LARGE, most=4),
        _of("three_steps", "ensemble of three identities, FP32[16]"),
        Scenario(
            "many",
            "200 models, identity, FP32[16], asked in turn",
            tuple(many_names()),
            "identity",
            protocols=("http-json", "http-binary", "grpc"),
            fleet="many",
        ),
    )
}
