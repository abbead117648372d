"""LiveMeter: measures one configuration of a model on a server, by the load generator of core bench."""

from __future__ import annotations

import math
import statistics
import time
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from core_bench.load.on_thread import run_on_thread
from core_bench.load.plan import Generator
from core_bench.measure.errors import merged
from core_bench.measure.result import of
from core_bench.measure.target import Target
from core_bench.native.engine import Histogram, Tally
from core_bench.plan import Level, Objective, Pace, Side, Timing

from core.errors import CoreError, Kind, unavailable
from core_tune.configuration.json_form import settings_of, with_settings
from core_tune.observation import PROBABILITIES, Observation, Refused, Size
from core_tune.server.repository import Repository
from core_tune.settings import Settings

_ROUNDS = 4
_WARM = 0.4  # of a round: load that is not measured, after a change
_SETTLE = (0.3, 0.5)  # of a round at least and at most: load before each round that is not measured
_FEW = 3  # requests above the quantile in a round, below which all rounds are taken together
_WANTED = 150  # requests of a round
_FEWEST = 24  # of a measurement
_LONGEST = 3  # times `round_s`

Watch = Callable[[str], None]
Executions = dict[int, tuple[int, int]]
"""Count and nanoseconds of all executions, by rows."""


class LiveMeter:
    """See Meter. Use as a context manager: at the end the model has the configuration from before.

    pace      of the requests of a rate: Pace.POISSON, or Pace.INTERVALS for `intervals_ns`
    watch     called several times a second while load runs
    """

    def __init__(
        self,
        side: Side,
        objective: Objective,
        *,
        round_s: float = 1.0,
        intervals_ns: tuple[int, ...] = (),
        watch: Watch = lambda text: None,
    ):
        self._target = Target(side, Timing())
        self._objective, self._round_s = objective, round_s
        self._settle_s = min(max(_SETTLE[0] * round_s, 2 * objective.seconds), _SETTLE[1] * round_s)
        self._intervals_ns, self._watch = intervals_ns, watch
        self._begin = time.monotonic()
        self._visits: Counter[Settings] = Counter()
        try:
            self.repository = Repository(self._target.control, side.model)
            self.original = self.repository.config()
            self.now = settings_of(self.original)
            self._changed = False
            self._target.check()
        except BaseException:
            self._target.close()
            raise

    @property
    def most_rows(self) -> int:
        """Return max_batch_size; 0 for a model without a batch dimension."""
        return int(self.original.get("max_batch_size", 0))

    @property
    def least_rate(self) -> float:
        """Return the requests per second of which a measurement has just enough."""
        return _FEWEST / (_ROUNDS * _LONGEST * self._round_s)

    def __enter__(self) -> LiveMeter:
        return self

    def __exit__(self, *error: object) -> None:
        try:
            self.restore()
        finally:
            self._target.close()

    def elapsed_s(self) -> float:
        return time.monotonic() - self._begin

    def restore(self) -> None:
        """Give the model the configuration that it had. Raises CoreError if the server refuses it."""
        if not self._changed:
            return
        try:
            self.repository.load(None)
            if self.repository.config() != self.original:  # it was not that of the repository
                self.repository.load(self.original)
        except Refused as error:
            raise CoreError(
                Kind.INTERNAL,
                f"model '{self.repository.model}' keeps the last measured settings "
                f"({self.now.shown}); the server refuses its own configuration: {error}",
            ) from None
        self._changed = False

    def keep(self) -> None:
        """Leave the model with the settings that it has now."""
        self._changed = False

    def apply(self, settings: Settings) -> None:
        """Load the model with these settings. Raises Refused if the server cannot; it serves as before."""
        if settings == self.now:
            return
        self.repository.load(with_settings(self.original, settings))
        self.now, self._changed = settings, True

    def at_rate(self, settings: Settings, rate: float) -> Observation:
        self.apply(settings)
        level = Level(Pace.POISSON, rate)
        if self._intervals_ns:
            average = sum(self._intervals_ns) / len(self._intervals_ns)
            factor = 1e9 / rate / average
            level = Level(
                Pace.INTERVALS, rate, tuple(round(each * factor) for each in self._intervals_ns)
            )
        round_s = min(max(self._round_s, _WANTED / rate), _LONGEST * self._round_s)
        return self._measured(settings, level, round_s, self._settle_s)

    def in_flight(self, settings: Settings, clients: int) -> Observation:
        self.apply(settings)
        return self._measured(settings, Level(Pace.CLOSED, clients), self._round_s, self._settle_s)

    def _measured(
        self, settings: Settings, level: Level, round_s: float, settle_s: float
    ) -> Observation:
        at_s = self.elapsed_s()
        clients = min(2 * settings.instances * max(1, settings.batch), 32)
        self._run(Level(Pace.CLOSED, clients), 0, 0.0, _WARM * self._round_s, settings)
        # All settings get the same arrivals in their first measurement, and others in their second one.
        first = _ROUNDS * self._visits[settings]
        self._visits[settings] += 1
        before, totals = self._executions()
        begin = time.monotonic()
        tallies = [
            self._run(level, first + number, settle_s, round_s, settings)
            for number in range(_ROUNDS)
        ]
        passed_s = time.monotonic() - begin
        after, later = self._executions()
        together = Histogram()
        for each in tallies:
            together.merge(each.latency)
        quantile = self._objective.quantile
        parts = [found for each in tallies if (found := of(each.latency, quantile)) is not None]
        if not parts:
            raise unavailable(f"no answer within {_ROUNDS * round_s:.0f} s with {settings.shown}")
        few = together.count / len(parts) * (1 - quantile) < _FEW
        requests = later[0] - totals[0]
        return Observation(
            settings=settings,
            rate=level.value if level.open else 0.0,
            clients=0 if level.open else int(level.value),
            sent=together.count / sum(each.measured_ns / 1e9 for each in tallies),
            answered=statistics.median(
                each.counts["completed"] / (each.measured_ns / 1e9) for each in tallies
            ),
            latency_s=(of(together, quantile) or 0.0) if few else statistics.median(parts),
            parts_s=parts,
            client_s=together.mean / 1e9,
            server_s=(later[1] - totals[1]) / requests / 1e9 if requests else 0.0,
            spread_s=[(of(together, each) or 0.0) for each in PROBABILITIES],
            sizes=_sizes(before, after),
            seconds=passed_s,
            at_s=at_s,
        )

    def _run(
        self, level: Level, number: int, settle_s: float, measure_s: float, settings: Settings
    ) -> Tally:
        """Run a round.

        number   of the arrivals
        Raises CoreError if a request fails or the server is lost, KeyboardInterrupt after Ctrl-C.
        """
        generator = self._target.generator(level, number)
        at_least = 0 if level.open else math.ceil(level.value)
        tally, alive, interrupted = run_on_thread(
            generator, settle_s, measure_s, at_least, lambda: self._look(generator)
        )
        if interrupted:
            raise KeyboardInterrupt
        if tally.errors:
            text, _ = next(iter(merged(tally.errors).items()))
            count = sum(tally.errors.values())
            raise CoreError(
                Kind.UNAVAILABLE,
                f"{count:,} of {tally.counts['all']:,} requests failed with {settings.shown} at "
                f"{level.label}: {text}",
            )
        if not alive:
            raise unavailable(f"the server {self._target.address.shown} does not answer any more")
        return tally

    def _look(self, generator: Generator) -> None:
        right, _ = generator.progress
        self._watch(f"{right:,} answers")

    def _executions(self) -> tuple[Executions, tuple[int, int]]:
        """Return executions by rows, and count and nanoseconds of all requests. Raises CoreError without
        statistics.
        """
        found = self._target.control.statistics(self.repository.model, "")
        if not found:
            raise unavailable("the server has no statistics of the model; core tune needs them")
        sizes: Executions = {}
        requests = nanoseconds = 0
        for version in found:
            success = version.get("inference_stats", {}).get("success", {})
            requests += int(success.get("count", 0))
            nanoseconds += int(success.get("ns", 0))
            for each in version.get("batch_stats", ()):
                count, spent = sizes.get(int(each["batch_size"]), (0, 0))
                sizes[int(each["batch_size"])] = (
                    count + int(each["compute_infer"].get("count", 0)),
                    spent + _spent_ns(each),
                )
        return sizes, (requests, nanoseconds)


def _spent_ns(size: Mapping[str, Any]) -> int:
    return sum(
        int(size.get(part, {}).get("ns", 0))
        for part in ("compute_input", "compute_infer", "compute_output")
    )


def _sizes(before: Executions, after: Executions) -> list[Size]:
    found = []
    for rows in sorted(after):
        count, spent = after[rows]
        earlier = before.get(rows, (0, 0))
        if count > earlier[0] and spent > earlier[1]:
            executions = count - earlier[0]
            found.append(Size(rows, executions, (spent - earlier[1]) / executions / 1e9))
    return found
