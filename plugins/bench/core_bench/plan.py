"""Side, Level, Timing and Plan: what a command line asks for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum


class Pace(IntEnum):
    """When requests are sent; the numbers are those of settings.hpp."""

    CLOSED = 0
    CONSTANT = 1
    POISSON = 2
    INTERVALS = 3


@dataclass(frozen=True)
class Level:
    """One amount of load.

    value          requests in flight at once (CLOSED), or requests per second
    intervals_ns   of INTERVALS: times between requests, repeated
    """

    pace: Pace
    value: float
    intervals_ns: tuple[int, ...] = ()

    @property
    def open(self) -> bool:
        return self.pace is not Pace.CLOSED

    @property
    def label(self) -> str:
        if not self.open:
            return f"{self.value:.0f} at once"
        if self.pace is Pace.INTERVALS:
            return f"intervals, {self.value:.5g}/s"
        return f"{self.value:.5g}/s"


@dataclass(frozen=True)
class Sequences:
    """Lengths and ids of sequences.

    length      requests of a sequence; 0 for the steps of its data
    variation   largest difference from `length`, as a part of it
    end_id      ids are below this; 0 for no bound
    count       sequences at once of an open loop
    """

    length: int = 20
    variation: float = 0.2
    first_id: int = 1
    end_id: int = 0
    count: int = 4


@dataclass(frozen=True)
class Tls:
    """Files of PEM; "" for those of the system, or none."""

    on: bool = False
    ca_file: str = ""
    certificate: str = ""
    key: str = ""
    verify: bool = True  # whether the server's certificate must be signed
    names_host: bool = True  # and be for the host of the URL


@dataclass(frozen=True)
class Side:
    """A server, a model on it, and the form of the requests; two of these are compared.

    kind        "triton" for the v2 protocol, "openai", or "in_process"
    protocol    "http" or "grpc"; of no meaning in process
    batch       rows of a request
    recorded_rows   requests of recorded traffic keep their rows
    json_input, json_output   tensors as JSON rather than binary
    memory      bytes of an output region of shared memory for outputs of unknown size; 0 for no shared memory
    repository  of a server in this process
    endpoint    path of OpenAI's routes
    """

    name: str
    model: str
    url: str
    kind: str = "triton"
    protocol: str = "http"
    version: str = ""
    batch: int = 1
    streaming: bool = False
    json_input: bool = False
    json_output: bool = False
    memory: int = 0
    repository: tuple[str, ...] = ()
    endpoint: str = "v1/chat/completions"
    shapes: Mapping[str, tuple[int, ...]] | None = None
    input_data: tuple[str, ...] = ("random",)
    string_length: int = 128
    string_data: str | None = None
    parameters: Mapping[str, str | int | float | bool] | None = None
    headers: tuple[tuple[str, str], ...] = ()
    compression: str = "none"
    sequences: Sequences = Sequences()
    tls: Tls = Tls()
    recorded_rows: bool = False
    different: int = 16
    seed: int = 1


@dataclass(frozen=True)
class Timing:
    """How long and how often.

    round_s       measured time of a round
    rounds        rounds of each case at least
    most_rounds   at most, until the interval is within `stability`
    stability     wanted half width of the intervals, as a part of the median; 0 for any
    requests      a round ends after so many requests instead, if not 0
    settle_s      load before the measured time of each round
    warmup_s      load before the first round, not measured
    timeout_s     for the answer to a request
    give_up_s     the measurement ends if the server has refused all connections for so long
    """

    round_s: float = 1.0
    rounds: int = 6
    most_rounds: int = 6
    stability: float = 0.0
    requests: int = 0
    settle_s: float = 0.1
    warmup_s: float = 1.0
    timeout_s: float = 60.0
    give_up_s: float = 3.0
    threads: int = 1
    connections: int = 0


@dataclass(frozen=True)
class Objective:
    """A bound of a latency: 0.99 and 0.02 for p99=20ms. Quantile -1 means the average."""

    quantile: float
    seconds: float

    @property
    def name(self) -> str:
        return "average" if self.quantile < 0 else f"p{100 * self.quantile:g}"


@dataclass(frozen=True)
class Plan:
    """Everything that a command line asks for.

    sides      one, or two that are compared
    levels     loads to measure; for `search` "knee" or "binary" the first, the last and the step
    search     "" measures all levels, "until" in turn until the objective is missed, "binary", "knee"
    quantile   that the perf_analyzer flag --percentile names, or -1
    """

    sides: Sequence[Side]
    levels: Sequence[Level]
    timing: Timing
    search: str = ""
    step: float = 1.0
    objective: Objective | None = None
    quantile: float = -1.0
    files: Mapping[str, str] | None = None
    verbose_csv: bool = False
    verbose: bool = False
