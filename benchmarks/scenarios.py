"""Scenarios: models and requests of a measurement, and the servers that support them.

command line ─► [Scenario] ─► measure.  A scenario names models of one fleet. All servers of a fleet run at
the same time, on one core, and are measured in turn.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from benchmarks.models.repository import many_names
from benchmarks.models.sample import Sample, samples

SMALL = ("http-json", "http-binary", "grpc", "grpc-h2load", "perf-http", "perf-grpc")
LARGE = ("http-binary", "grpc")
IN_TURN = ("http-json", "http-binary", "grpc")  # their generators send several requests in turn
EVERYBODY = ("core", "triton", "mlserver", "fastapi")


@dataclass(frozen=True)
class Scenario:
    """One scenario.

    title       title in the report
    models      models of the requests, in turn; nearly always one
    sample      name of the requests in `samples`
    servers     servers that support it
    protocols   useful protocols
    fleet       models that the servers run: "all" or "many"
    most        maximum useful number of connections: more would only wait for each other
    instead     server → (model, sample) that replaces the scenario's for this server
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

    def asked_of(self, server: str) -> tuple[tuple[str, ...], Sequence[Sample]]:
        """Return the models for this server, and the requests with their right responses."""
        if server in self.instead:
            model, sample = self.instead[server]
            return (model,), samples(sample)
        return self.models, samples(self.sample)


def _of(name: str, title: str, model: str = "", **others: object) -> Scenario:
    """Return a scenario; `model` is its model if that has not the scenario's name."""
    return Scenario(name, title, (model or name,), name, **others)  # type: ignore[arg-type]


SCENARIOS = {
    scenario.name: scenario
    for scenario in (
        _of("identity", "identity, FP32[16], no batching", servers=EVERYBODY),
        _of("identity_batched", "identity, FP32[1, 16], dynamic batching"),
        _of(
            "identity_mixed",
            "identity, dynamic batching, 1 to 8 rows of FP32[16] in turn, each request with an id",
            model="identity_batched",
            protocols=IN_TURN,
        ),
        *(
            _of(
                f"identity_{rows}_rows",
                f"identity, dynamic batching, FP32[{rows}, 16], all requests alike",
                model="identity_batched",
                protocols=IN_TURN,
            )
            for rows in (4, 5)
        ),
        *(
            _of(
                f"identity_{rows}_rows_mixed",
                f"identity, dynamic batching, FP32[{rows}, 16], each request with an id and "
                "numbers of its own",
                model="identity_batched",
                protocols=IN_TURN,
            )
            for rows in (4, 5)
        ),
        _of("add_sub", "Python model add_sub, FP32[16], no batching", servers=EVERYBODY),
        _of("add_sub_batched", "Python model add_sub, FP32[1, 16], dynamic batching"),
        _of(
            "add_sub_mixed",
            "Python model add_sub, dynamic batching, 1 to 8 rows of FP32[16] in turn, each request "
            "with an id",
            model="add_sub_batched",
            protocols=IN_TURN,
        ),
        *(
            _of(
                f"add_sub_{rows}_rows",
                f"Python model add_sub, dynamic batching, FP32[{rows}, 16], all requests alike",
                model="add_sub_batched",
                protocols=IN_TURN,
            )
            for rows in (4, 5)
        ),
        *(
            _of(
                f"add_sub_{rows}_rows_mixed",
                f"Python model add_sub, dynamic batching, FP32[{rows}, 16], each request with an id and "
                "numbers of its own",
                model="add_sub_batched",
                protocols=IN_TURN,
            )
            for rows in (4, 5)
        ),
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
            protocols=IN_TURN,
            fleet="many",
        ),
    )
}
