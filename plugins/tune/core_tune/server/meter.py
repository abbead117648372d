"""LiveMeter: measures one configuration of a model on a server, by the load generator of core bench."""

from __future__ import annotations

import dataclasses
import math
import statistics
import time
from collections import Counter
from collections.abc import Callable
from types import TracebackType

import numpy as np
from core_bench.load.on_thread import run_on_thread
from core_bench.load.plan import Generator
from core_bench.measure.errors import merged
from core_bench.measure.result import of
from core_bench.measure.target import Target
from core_bench.native.engine import Histogram, Tally
from core_bench.plan import Level, Pace, Side, Timing

from core.errors import CoreError, Kind, unavailable
from core_tune.configuration.json_form import settings_of, with_settings
from core_tune.configuration.threads import thread_parameters
from core_tune.observation import PROBABILITIES, Observation, Refused, latency_of
from core_tune.queueing.arrivals import Arrivals
from core_tune.server.executions import Executions, executions_of
from core_tune.server.live import live_batching
from core_tune.server.own import OwnServer
from core_tune.server.repository import Repository
from core_tune.settings import Settings

_ROUNDS = 4
_WARM = 0.4  # of a round: load that is not measured, after a change
_SETTLE = (0.3, 0.5)  # of a round at least and at most: load before each round that is not measured
_WANTED = 150  # requests of a round
_FEWEST = 24  # of a measurement
_LONGEST = 3  # times `round_s`
_MORE_S = 1.0  # arrivals behind the end of a round, whose last requests may come late

Watch = Callable[[str], None]


class LiveMeter:
    """See Meter. Use as a context manager: at the end the model has the configuration from before.

    arrivals   of the requests of a rate
    server     that may be started anew; None if it may not
    watch      called several times a second while load runs
    told       called after each measurement
    """

    def __init__(
        self,
        side: Side,
        arrivals: Arrivals,
        *,
        round_s: float = 1.0,
        server: OwnServer | None = None,
        watch: Watch = lambda text: None,
        told: Callable[[Observation], None] = lambda seen: None,
    ):
        self._side, self._arrivals, self._round_s = side, arrivals, round_s
        self._server, self._watch, self._told = server, watch, told
        settle_s = max(_SETTLE[0] * round_s, 2 * arrivals.seconds)
        self._settle_s = min(settle_s, _SETTLE[1] * round_s)
        self._begin = time.monotonic()
        self._visits: Counter[Settings] = Counter()
        self._target = Target(side, Timing())
        try:
            self.repository = Repository(self._target.control, side.model)
            self.original = self.repository.config()
            self.threads = thread_parameters(str(self.original.get("backend", "")))
            workers = server.workers if server else 1
            self.now = dataclasses.replace(
                settings_of(self.original, self.threads), workers=workers
            )
            self._changed = False
            self._live = live_batching(
                self._target.control, side.model, self.original, lasting=False
            )
            self._target.check()
        except BaseException:
            self._target.close()
            raise

    @property
    def most_rows(self) -> int:
        """Return max_batch_size; 0 for a model without a batch dimension."""
        return int(self.original.get("max_batch_size", 0))

    @property
    def rows(self) -> int:
        """Return the average rows of a request."""
        return max(round(self._target.rows), 1)

    @property
    def least_rate(self) -> float:
        """Return the requests per second of which a measurement has just enough."""
        return _FEWEST / (_ROUNDS * _LONGEST * self._round_s)

    def __enter__(self) -> LiveMeter:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if self._server is None:  # an own server ends, and its settings with it
                self.restore()
        except CoreError as failed:
            if not isinstance(error, CoreError):
                raise
            raise CoreError(
                error.kind,
                f"{error.message}; and the model did not get its settings back: {failed.message}",
            ) from error
        finally:
            self._target.close()

    def elapsed_s(self) -> float:
        return time.monotonic() - self._begin

    def restore(self) -> None:
        """Give the model the live settings and the configuration that it had.

        If one of them fails, the other is given back all the same.
        Raises CoreError if the server refuses one, or does not answer.
        """
        try:
            try:
                if self._live is not None:
                    self._live.restore()
            finally:
                if self._changed:
                    self._load_original()
        except Refused as error:
            raise CoreError(
                Kind.INTERNAL,
                f"model '{self.repository.model}' keeps the last measured settings "
                f"({self.now.shown}); the server refuses those from before the search: {error}",
            ) from None

    def _load_original(self) -> None:
        self.repository.load(None)
        if self.repository.config() != self.original:  # it was not that of the repository
            self.repository.load(self.original)
        self._changed = False

    def keep(self) -> None:
        """Leave the model with the settings that it has now."""
        self._changed = False
        if self._live is not None:
            self._live.keep()

    def apply(self, settings: Settings) -> None:
        """Serve the model with these settings. Raises Refused if the server cannot.

        `now` is then what the server serves: batches and delay may have changed already.

        Batches and delay change by live settings, if the model has them: these take precedence over the
        configuration of a load. What else differs needs a load. Another number of workers restarts the
        server, and of threads if a process takes it only once.
        """
        if settings == self.now:
            return
        once = self.threads is not None and self.threads.once
        if settings.workers != self.now.workers or (once and settings.threads != self.now.threads):
            self._restart(settings.workers)
        if self._live is not None and settings.batching != self.now.batching:
            self._live.set(settings)
            self.now = self.now.with_batching_of(settings)
        if settings == self.now:
            return
        self._changed = True  # before: Ctrl-C may come while the server loads
        loaded = settings if self._live is None else settings.with_batching_of(self._live.beginning)
        self.repository.load(with_settings(self.original, loaded, self.threads))
        self.now = settings

    def _restart(self, workers: int) -> None:
        assert self._server is not None
        self._watch("starting the server anew")
        self._target.close()
        self._server.restart(workers)
        self._target = Target(self._side, Timing())
        self.repository = Repository(self._target.control, self._side.model)
        self._live = live_batching(
            self._target.control, self._side.model, self.original, lasting=False
        )
        self.now = dataclasses.replace(settings_of(self.original, self.threads), workers=workers)

    def at_rate(self, settings: Settings, rate: float, longer: float = 1.0) -> Observation:
        self.apply(settings)
        round_s = longer * min(max(self._round_s, _WANTED / rate), _LONGEST * self._round_s)
        # All settings get the same arrivals in their first measurement, and others in their second one.
        first = _ROUNDS * self._visits[settings]
        self._visits[settings] += 1
        seconds = self._settle_s + round_s
        due = [
            self._arrivals.due(rate, seconds + _MORE_S, number)
            for number in range(first, first + _ROUNDS)
        ]
        levels = [_level(each, rate) for each in due]
        seen = self._measured(settings, levels, round_s)
        within = [each[each <= seconds] for each in due]
        return dataclasses.replace(seen, due=within, settle_s=self._settle_s)

    def in_flight(self, settings: Settings, clients: int) -> Observation:
        self.apply(settings)
        return self._measured(settings, [Level(Pace.CLOSED, clients)] * _ROUNDS, self._round_s)

    def _measured(self, settings: Settings, levels: list[Level], round_s: float) -> Observation:
        at_s = self.elapsed_s()
        clients = min(2 * settings.instances * settings.workers * max(1, settings.batch), 32)
        self._run(Level(Pace.CLOSED, clients), 0.0, _WARM * self._round_s, settings)
        before = self._executions()
        begin = time.monotonic()
        tallies = [self._run(level, self._settle_s, round_s, settings) for level in levels]
        passed_s = time.monotonic() - begin
        after = self._executions()
        together = Histogram()
        for each in tallies:
            together.merge(each.latency)
        quantile = self._arrivals.quantile
        parts = [found for each in tallies if (found := of(each.latency, quantile)) is not None]
        if not parts:
            raise unavailable(f"no answer within {_ROUNDS * round_s:.0f} s with {settings.shown}")
        whole, level = of(together, quantile) or 0.0, levels[0]
        seen = Observation(
            settings=settings,
            rate=level.value if level.open else 0.0,
            clients=0 if level.open else int(level.value),
            sent=together.count / sum(each.measured_ns / 1e9 for each in tallies),
            answered=statistics.median(
                each.counts["completed"] / (each.measured_ns / 1e9) for each in tallies
            ),
            latency_s=latency_of(parts, whole, together.count, quantile),
            parts_s=parts,
            client_s=together.mean / 1e9,
            server_s=after.seconds_since(before),
            spread_s=[(of(together, each) or 0.0) for each in PROBABILITIES],
            sizes=after.sizes_since(before),
            seconds=passed_s,
            at_s=at_s,
        )
        self._told(seen)
        return seen

    def _run(self, level: Level, settle_s: float, measure_s: float, settings: Settings) -> Tally:
        """Run a round.

        Raises CoreError if a request fails or the server is lost, KeyboardInterrupt after Ctrl-C.
        """
        generator = self._target.generator(level)
        at_least = 0 if level.open else math.ceil(level.value)
        tally, alive, interrupted = run_on_thread(
            generator, settle_s, measure_s, at_least, lambda: self._look(generator)
        )
        if interrupted:
            raise KeyboardInterrupt
        if tally.errors:
            text, _ = next(iter(merged(tally.errors).items()))
            count = sum(tally.errors.values())
            load = f"{level.value:.4g}/s" if level.open else level.label
            raise CoreError(
                Kind.UNAVAILABLE,
                f"{count:,} of {tally.counts['all']:,} requests failed with {settings.shown} at "
                f"{load}: {text}",
            )
        if not alive:
            raise unavailable(f"the server {self._target.address.shown} does not answer any more")
        return tally

    def _look(self, generator: Generator) -> None:
        right, _ = generator.progress
        self._watch(f"{right:,} answers")

    def _executions(self) -> Executions:
        return executions_of(self._target.control.statistics(self.repository.model, ""))


def _level(due: np.ndarray, rate: float) -> Level:
    """Return the load of requests that are due at these times."""
    intervals = np.diff(np.rint(due * 1e9).astype(np.int64), prepend=np.int64(0))
    return Level(Pace.INTERVALS, rate, tuple(intervals.tolist()))
