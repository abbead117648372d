"""BenchRequest: what a caller wants to measure, read from JSON and checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from core.errors import invalid
from core_bench.http.own_address import server_flags
from core_bench.http.shapes import check_shapes, shape_flags

if TYPE_CHECKING:
    from core.server import InferenceServer

_MOST_LOADS = 16
_MOST_LOAD = {"concurrency": 512, "rate": 100_000}
_LONGEST_S = 600.0  # of all rounds together


@dataclass(frozen=True)
class BenchRequest:
    """The loads and the rounds of a measurement.

    kind      "concurrency": loads are requests at once; "rate": requests per second
    loads     measured in this order
    batch     rows of a request
    protocol  "http" or "grpc"
    round_s   measured time of a round
    rounds    of each load
    shapes    input → dims without the batch, for inputs of any size
    """

    kind: str = "concurrency"
    loads: list[float] = field(default_factory=lambda: [1, 2, 4, 8])
    batch: int = 1
    protocol: str = "http"
    round_s: float = 1.0
    rounds: int = 3
    shapes: dict[str, list[int]] = field(default_factory=dict)

    @classmethod
    def of(cls, document: Any) -> BenchRequest:
        """Read the JSON of a caller. Raises CoreError(INVALID) for what is none."""
        if not isinstance(document, dict):
            raise invalid("the body is no JSON object; expected {} or the loads to measure")
        found = {**asdict(cls()), **document}
        if unknown := found.keys() - cls.__dataclass_fields__.keys():
            expected = ", ".join(cls.__dataclass_fields__)
            raise invalid(f"unknown member '{min(unknown)[:64]}'; expected {expected}")
        if found["kind"] not in tuple(_MOST_LOAD):  # of a tuple: the kind may have no hash
            raise invalid(f"kind is {found['kind']!r}; expected concurrency or rate")
        if found["protocol"] not in ("http", "grpc"):
            raise invalid(f"protocol is {found['protocol']!r}; expected http or grpc")
        _whole("batch", found["batch"], 4096)
        _whole("rounds", found["rounds"], 20)
        if not _is_number(found["round_s"]) or not 0.1 <= found["round_s"] <= 60:
            raise invalid(f"round_s is {found['round_s']!r}; expected 0.1 to 60 seconds")
        check_shapes(found["shapes"])
        wanted = cls(**found)
        wanted._check_loads()
        return wanted

    def _check_loads(self) -> None:
        loads, most = self.loads, _MOST_LOAD[self.kind]
        if not isinstance(loads, list) or not 1 <= len(loads) <= _MOST_LOADS:
            raise invalid(f"loads is {loads!r}; expected a list of 1 to {_MOST_LOADS} numbers")
        for each in loads:
            is_right = _is_number(each) and 0 < each <= most
            if not is_right or (self.kind != "rate" and each != int(each)):
                raise invalid(f"loads has {each!r}; expected {self.kind} above 0, up to {most}")
        if (seconds := len(loads) * self.rounds * self.round_s) > _LONGEST_S:
            raise invalid(
                f"the rounds take {seconds:,.0f} s; expected at most {_LONGEST_S:,.0f}: fewer loads, fewer "
                "or shorter rounds"
            )

    def document(
        self, server: InferenceServer, model: str, version: int, headers: Mapping[str, str]
    ) -> dict[str, Any]:
        """Return what the worker reads: the flags of core bench, and the loads.

        headers   of the caller, whose credentials the requests of the measurement get
        Raises CoreError(UNAVAILABLE) if the server has no address for it.
        """
        arguments = [
            *server_flags(server, model, self.protocol, headers),
            *([f"--model-version={version}"] if version >= 0 else []),
            f"--batch-size={self.batch}",
            f"--measurement-interval={round(self.round_s * 1000)}",
            f"--rounds={self.rounds}",
            *shape_flags(self.shapes),
        ]
        return {"arguments": arguments, "kind": self.kind, "loads": self.loads}


def _whole(name: str, value: Any, most: int) -> None:
    if type(value) is not int or not 1 <= value <= most:
        raise invalid(f"{name} is {value!r}; expected a whole number from 1 to {most}")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
