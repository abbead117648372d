"""Search: finds the settings that hold the highest rate within the objective, in few measurements.

first measurements ─► service times ─► limits of all settings, predicted ─► most promising ones are measured
                           ▲                                                       │
                           └─────────────── what is known of all ◄─────────────────┘
then the best and what may surpass it are measured in turn, in longer rounds, until that is decided.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from core.errors import unavailable
from core_tune.observation import Meter, Observation, Refused
from core_tune.queueing.fit import fit
from core_tune.queueing.inversion import limit_from
from core_tune.queueing.limit import Traffic, capacity
from core_tune.queueing.machine import Array, Machine
from core_tune.search.posterior import Estimate, Known, posterior
from core_tune.search.prediction import Prediction
from core_tune.settings import Settings, Space

_EXPLORED = 0.7  # of the measurements; the rest compares the best ones
_LONGER = 3.0  # times the rounds of the comparison, if the time suffices
_NO_GAIN = 0.003  # expected improvement of the logarithm below which exploring ends
_DECIDED = 0.001  # the same, below which the comparison ends
_FINALISTS = 4  # settings that are confirmed, whatever their expected improvement
_CONFIRMED = 3  # measurements of each at least
_EQUAL = (0.005, 0.01)
"""Settings whose limits differ by less than the noise are equal; the noise counts within these bounds."""
_ABOVE = 1.05  # of a rate that kept the objective, at which the same settings are measured next
_FLOOR = 1e-3  # of the capacity: limit of settings that miss the objective at any rate
_CALIBRATIONS = 0.25  # of the measurements at most
_MOST_CLIENTS = 128


@dataclass
class Budget:
    """measurements and seconds at most."""

    measurements: int = 40
    seconds: float = 540.0


@dataclass
class Found:
    """What a search has found.

    best         settings with the highest limit; None if none keeps the objective
    limits       requests per second at most, by settings that were measured, the best first
    deviations   standard deviations of their logarithms
    refused      reasons by settings that the server refused
    machines     times of the executions that explain the measurements, by kind of the instances
    """

    best: Settings | None
    limits: dict[Settings, float]
    deviations: dict[Settings, float]
    observations: list[Observation]
    refused: dict[Settings, str]
    machines: dict[str, Machine]


@dataclass
class Search:
    """Use `run` once, then `found`, also if `run` was interrupted.

    watch        called before each measurement with what is measured
    least_rate   requests per second, below which a measurement has too few requests
    processors   threads of executions whose number the backend chooses
    machines     what is known of the times, by kind of the instances
    """

    space: Space
    traffic: Traffic
    meter: Meter
    budget: Budget = field(default_factory=Budget)
    watch: Callable[[str], None] = lambda text: None
    least_rate: float = 0.0
    processors: int = 1
    observations: list[Observation] = field(default_factory=list)
    estimates: list[Estimate] = field(default_factory=list)
    refused: dict[Settings, str] = field(default_factory=dict)
    machines: dict[str, Machine] = field(default_factory=dict)

    def run(self) -> None:
        """Search. Raises CoreError if requests fail, or the server is lost or refuses all settings."""
        self._calibrate()
        if not self.observations:
            settings, reason = next(iter(self.refused.items()))
            raise unavailable(
                f"the server refuses all settings that were tried, first {settings.shown}: {reason}"
            )
        self._learn()
        if self.space.current not in self.refused:
            self._rated(self.space.current)
        compared = (1 - _EXPLORED) * (self.budget.measurements - len(self.observations) + 1)
        while not self._spent(compared):
            wanted = self._promising()
            if wanted is None:
                break
            self._rated(wanted)
            self._learn()
        while rivals := self._undecided():
            for each in rivals:
                if self._spent():
                    return
                self._rated(each, self._longer())

    def _say(self, text: str) -> None:
        self.watch(f"{len(self.observations) + 1} of {self.budget.measurements}, {text}")

    def _spent(self, kept: float = 0.0) -> bool:
        """Return whether the budget is used, but for some measurements and their part of the time."""
        part = 1 - kept / self.budget.measurements
        return (
            len(self.observations) >= self.budget.measurements - kept
            or self.meter.elapsed_s() >= part * self.budget.seconds
        )

    def _calibrate(self) -> None:
        """Measure service times by batch size, kind and threads, in closed loops."""
        most = max(_CALIBRATIONS * self.budget.measurements, 2)
        for settings, clients in self._calibrations():
            if len(self.observations) < most:
                self._closed(settings, min(clients, _MOST_CLIENTS))

    def _calibrations(self) -> Iterator[tuple[Settings, int]]:
        now, rows, there = self.space.current, self.traffic.rows, set(self.space)
        full = max(1, max(each.batch for each in there) // rows)
        batching = replace(now, batch=max(each.batch for each in there), delay_us=0, least=0)
        batching = batching if full > 1 and batching in there else now
        size = max(1, batching.batch // rows)
        most = max(each.instances for each in there)
        yield now, 1
        for kind in dict.fromkeys(each.kind for each in there if each.kind != now.kind):
            yield replace(now, kind=kind, threads=0), 1
            if batching != now and replace(batching, kind=kind, threads=0) in there:
                yield replace(batching, kind=kind, threads=0), 2 * full * now.instances
        if batching != now:
            yield batching, 2 * full * now.instances
        # How much executions slow each other down: few of them at once do not tell it of many.
        if most > 1 and replace(batching, instances=most) in there:
            yield replace(batching, instances=most), 2 * size * most
        threads = {each.threads or self.processors for each in there if each.kind == now.kind}
        if len(threads) > 1:
            used = now.threads or self.processors
            other = min(threads) if used != min(threads) else max(threads)
            yield replace(now, threads=other), 1
            if batching != now:
                yield replace(batching, threads=other), 2 * full * now.instances
        if batching != now:
            yield batching, max(2, full // 4) * now.instances
        elif most == 1:
            yield now, 2 * now.instances * now.workers * max(1, now.batch // rows)

    def _closed(self, settings: Settings, clients: int) -> None:
        self._say(f"{settings.shown}, {clients} at once")
        try:
            self.observations.append(self.meter.in_flight(settings, clients))
        except Refused as error:
            self.refused[settings] = str(error)

    def _rated(self, settings: Settings, longer: float = 1.0) -> None:
        """Measure settings at their expected limit, in rounds that are longer by a factor."""
        above = _ABOVE * self._kept.get(settings, 0.0)
        rate = max(self._limit_of(settings), above, self.least_rate)
        self._say(f"{settings.shown}, {rate:.4g}/s")
        try:
            seen = self.meter.at_rate(settings, rate, longer)
        except Refused as error:
            self.refused[settings] = str(error)
            self._known = None
            return
        self.observations.append(seen)
        machine = self.machines[settings.kind]
        found, deviation = limit_from(seen, machine, self.traffic)
        kept = not seen.overloaded and seen.latency_s <= self.traffic.seconds
        self._kept[settings] = seen.sent if kept else 0.0
        if found:
            self._missing.discard(settings)
        else:
            self._missing.add(settings)
        floor = _FLOOR * capacity(machine, settings, self.traffic)
        self.estimates.append(Estimate(settings, math.log(max(found, floor)), deviation, seen.at_s))
        self._known = None

    def __post_init__(self) -> None:
        self._prediction = Prediction(self.traffic)
        self._missing: set[Settings] = set()  # the objective, at any rate
        self._kept: dict[Settings, float] = {}  # rates of last measurements that kept the objective

    _settings: list[Settings] = field(default_factory=list)
    _predicted: Array | None = None
    _known: Known | None = None

    def _learn(self) -> None:
        """Fit the queueing model again. Settings of a kind that nothing was measured of are left out."""
        by_kind: dict[str, list[Observation]] = {}
        for each in self.observations:
            by_kind.setdefault(each.settings.kind, []).append(each)
        self.machines = {kind: fit(seen, self.processors) for kind, seen in by_kind.items()}
        self._settings = [
            each for each in self.space if each not in self.refused and each.kind in self.machines
        ]
        self._predicted = self._prediction.update(self.machines, self._settings)
        self._known = None

    def known(self) -> Known:
        """Return what is known of the settings of `self._settings`."""
        if self._known is None:
            assert self._predicted is not None
            usable = [each for each in self.estimates if each.settings not in self.refused]
            self._known = posterior(self._settings, self._predicted, usable)
        return self._known

    def _limit_of(self, settings: Settings) -> float:
        return math.exp(float(self.known().mean[self._settings.index(settings)]))

    def _promising(self) -> Settings | None:
        """Return the settings whose measurement promises most; None if none promises anything.

        It is that which may surpass the best most, or the best, if less is known of it.
        """
        ranked = self._ranked()
        if not ranked:
            return None
        best = ranked[0]
        gains = self._gains(best, self._settings)
        found = max(gains, key=lambda each: gains[each], default=best)
        if found == best or gains[found] <= _NO_GAIN:
            return None
        deviation = dict(zip(self._settings, self.known().deviation, strict=True))
        return best if deviation[best] > deviation[found] else found

    def _undecided(self) -> list[Settings]:
        """Return the settings to compare; [] if the best are decided.

        At most three settings: the best, the one with the highest expected improvement over it, and one
        finalist with fewer than _CONFIRMED measurements. The one whose last measurement is oldest comes
        first: all in turn, so that they meet the same machine.
        """
        ranked = self._ranked()
        if not ranked:
            return []
        best = ranked[0]
        gains = self._gains(best, ranked)
        rivals = sorted((each for each in gains if gains[each] > _DECIDED), key=lambda e: -gains[e])
        measured = [each.settings for each in self.estimates]
        doubtful = [each for each in ranked[:_FINALISTS] if measured.count(each) < _CONFIRMED]
        if not rivals and not doubtful:
            return []
        compared = dict.fromkeys([best, *rivals[:1], *doubtful[:1]])
        return sorted(compared, key=lambda each: measured[::-1].index(each), reverse=True)

    def _longer(self) -> float:
        """Return by which factor the time permits longer rounds than before."""
        made, passed_s = len(self.observations), self.meter.elapsed_s()
        expected_s = (self.budget.measurements - made) * passed_s / made
        return min(max((self.budget.seconds - passed_s) / expected_s, 1.0), _LONGER)

    def _gains(self, best: Settings, choices: Sequence[Settings]) -> dict[Settings, float]:
        """Return the expected improvement over the best of each choice."""
        known, place = self.known(), {each: i for i, each in enumerate(self._settings)}
        gains, other = {}, place[best]
        for each in choices:
            if each not in self.refused and each != best:
                ahead = float(known.mean[place[each]] - known.mean[other])
                gains[each] = _gain(ahead, _apart(known, place[each], other))
        return gains

    def _ranked(self) -> list[Settings]:
        """Return the measured settings that the server does not refuse, the best first."""
        if not self._settings:
            return []
        mean = self.known().mean
        measured = {each.settings for each in self.estimates}
        order = sorted(range(len(self._settings)), key=lambda i: -mean[i])
        return [
            self._settings[i]
            for i in order
            if self._settings[i] in measured and self._settings[i] not in self.refused
        ]

    def _is_equal(self, settings: Settings, best: Settings) -> bool:
        """Return whether the limit of settings is that of the best, as far as is known."""
        known = self.known()
        one, other = self._settings.index(settings), self._settings.index(best)
        bar = min(max(_apart(known, one, other), _EQUAL[0]), _EQUAL[1])
        return float(known.mean[other] - known.mean[one]) <= bar

    def found(self) -> Found:
        """Return what is known so far."""
        ranked = self._ranked()
        limits, deviations = {}, {}
        for each in ranked:
            known, number = self.known(), self._settings.index(each)
            limits[each] = math.exp(float(known.mean[number]))
            deviations[each] = float(known.deviation[number])
        able = [each for each in ranked if each not in self._missing]
        best = None
        if able:
            best = min((each for each in able if self._is_equal(each, able[0])), key=_cost)
        return Found(best, limits, deviations, self.observations, self.refused, self.machines)


def _cost(settings: Settings) -> tuple[int, ...]:
    return settings.cost


def _apart(known: Known, one: int, other: int) -> float:
    """Return the standard deviation of the difference of two limits."""
    spread = known.covariance
    found = spread[one, one] + spread[other, other] - 2 * spread[one, other]
    return math.sqrt(max(float(found), 1e-12))


def _gain(ahead: float, deviation: float) -> float:
    """Return the expected improvement of a normal variable, whose mean is `ahead` of the best."""
    scaled = ahead / deviation
    density = math.exp(-scaled * scaled / 2) / math.sqrt(2 * math.pi)
    below = (1 + math.erf(scaled / math.sqrt(2))) / 2
    return ahead * below + deviation * density
