"""TuneRequest: the objective and the bounds of a search, read from JSON and checked."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from core_bench.flags.values import objective
from core_bench.http.own_address import server_flags
from core_bench.http.shapes import check_shapes, shape_flags

from core.errors import invalid

if TYPE_CHECKING:
    from core.server import InferenceServer


@dataclass(frozen=True)
class TuneRequest:
    """What a caller wants to find.

    slo            the objective, such as p99=20ms
    minutes, measurements   at most
    protocol       "http" or "grpc"
    batch          rows of a request
    round_s        of which a measurement has 4; 0: by the objective
    apply          whether the model keeps the best settings; else it gets its own back. They last until its
                   next load; batches and delay that are live settings until these are reset
    shapes         input → dims without the batch, for inputs of any size
    """

    slo: str = "p99=20ms"
    minutes: float = 5.0
    measurements: int = 40
    protocol: str = "http"
    batch: int = 1
    round_s: float = 0.0
    apply: bool = False
    shapes: dict[str, list[int]] = field(default_factory=dict)

    @classmethod
    def of(cls, document: Any) -> TuneRequest:
        """Read the JSON of a caller. Raises CoreError(INVALID) for what is none."""
        if not isinstance(document, dict):
            raise invalid("the body is no JSON object; expected {} or the objective of the search")
        found = {**asdict(cls()), **document}
        if unknown := found.keys() - cls.__dataclass_fields__.keys():
            expected = ", ".join(cls.__dataclass_fields__)
            raise invalid(f"unknown member '{min(unknown)[:64]}'; expected {expected}")
        _check_objective(found["slo"])
        for name, least, most in (("minutes", 0.01, 60), ("round_s", 0, 10)):
            value = found[name]
            is_number = isinstance(value, int | float) and not isinstance(value, bool)
            if not is_number or not least <= value <= most:
                raise invalid(f"{name} is {value!r}; expected a number from {least} to {most}")
        for name, most in (("measurements", 200), ("batch", 4096)):
            if type(found[name]) is not int or not 1 <= found[name] <= most:
                raise invalid(
                    f"{name} is {found[name]!r}; expected a whole number from 1 to {most}"
                )
        if found["protocol"] not in ("http", "grpc"):
            raise invalid(f"protocol is {found['protocol']!r}; expected http or grpc")
        if not isinstance(found["apply"], bool):
            raise invalid(f"apply is {found['apply']!r}; expected true or false")
        check_shapes(found["shapes"])
        return cls(**found)

    def arguments(
        self, server: InferenceServer, model: str, headers: Mapping[str, str]
    ) -> list[str]:
        """Return the flags of core tune for a model of this server.

        headers   of the caller, whose credentials the requests get
        Raises CoreError(UNAVAILABLE) if the server has no address for it.
        """
        return [
            *server_flags(server, model, self.protocol, headers),
            f"--slo={self.slo}",
            f"--minutes={self.minutes}",
            f"--measurements={self.measurements}",
            f"--batch-size={self.batch}",
            *([f"--measurement-interval={self.round_s * 1000:g}"] if self.round_s else []),
            *shape_flags(self.shapes),
            *(["--apply"] if self.apply else []),
        ]


def _check_objective(value: Any) -> None:
    with contextlib.suppress(argparse.ArgumentTypeError):
        if isinstance(value, str):
            objective(value)
            return
    raise invalid(f"slo is {value!r}; expected an objective such as p99=20ms or average=5ms")
