"""Keeper: decides what changes to keep an objective, window by window.

window ─► estimate ─► on trial? judge it ─► near the objective? faster settings ─► calm? cheaper settings
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from core_bench.report.numbers import count_text, time_text

from core_tune.online.window import FOREVER, Estimator, Window
from core_tune.settings import Settings

_NEAR = 0.9  # of the objective, from where on faster settings are wanted
_MORE = 1.1  # times the rate, for which faster settings are chosen
_BETTER = 0.95  # of the latency, that faster settings must promise
_EASY = 0.6  # of the objective, that cheaper settings must promise
_GROWTH = 1.3  # times the highest rate of calm windows, for which they must promise it
_CALM = 6  # windows far below the objective, before cheaper settings are tried
_WORSE = 1.1  # times the latency before a change, from where on the change is undone
_ALIKE = 1.25  # times the rate before a change, up to which latencies are compared
_FEW = 20  # requests of a window, below which it says nothing
_SILENT = (
    3  # such windows, after which a change is undone: the model may answer nothing because of it
)
_AVOIDED = 30  # windows, in which settings that were undone are not tried again; doubles each time


@dataclass(frozen=True)
class Decision:
    """Settings to change to, and why; None to keep those of now, with something to say.

    faster   whether they should be faster, not cheaper
    """

    settings: Settings | None
    reason: str
    faster: bool = True


@dataclass
class _Trial:
    """A change that is not judged yet.

    before      settings, latency and rate before it
    faster      as in Decision
    silent      windows since it that say nothing
    """

    before: Settings
    latency_s: float
    rate: float
    faster: bool
    waited: bool = False
    silent: int = 0


class Keeper:
    """Call `decide` with each window; a change that the caller makes is told by `changed` or `failed`.

    choices       settings to choose from
    name          of the bounded latency: p99
    objective_s   its bound
    """

    def __init__(
        self, estimator: Estimator, choices: Sequence[Settings], name: str, objective_s: float
    ):
        self._estimator, self._choices = estimator, choices
        self.name, self._objective_s = name, objective_s
        self._trial: _Trial | None = None
        self._calm: list[float] = []  # rates of the last calm windows
        self._number = 0
        self._avoided: dict[Settings, tuple[int, int]] = {}  # until which window, and for how many
        self._helpless = False
        self.latency_s = 0.0

    def decide(self, window: Window) -> Decision | None:
        """Return what to do; None for nothing."""
        self._number += 1
        if window.requests < _FEW or not window.sizes:
            return None if self._trial is None else self._unheard(window, self._trial)
        self.latency_s = self._estimator.learn(window)
        if self._trial is not None:
            return self._judge(window, self._trial)
        if self.latency_s > _NEAR * self._objective_s:
            self._calm.clear()
            return self._faster(window)
        self._helpless = False
        self._calm.append(window.rate)
        return self._cheaper(window) if len(self._calm) >= _CALM else None

    def changed(self, before: Window, decision: Decision) -> None:
        """Note that the settings of a decision are in use."""
        assert decision.settings is not None
        undone = self._trial is not None
        self._calm.clear()
        made = _Trial(before.settings, self.latency_s, before.rate, decision.faster)
        self._trial = None if undone else made

    def failed(self, decision: Decision) -> None:
        """Note that the server refused the settings of a decision."""
        assert decision.settings is not None
        if self._trial is None:  # else it is the way back, which the next window tries again
            self._avoid(decision.settings)

    def unjudged(self, window: Window) -> Decision | None:
        """Return how to undo a change that the end leaves without a judgement; None if there is none."""
        if self._trial is None:
            return None
        return Decision(
            self._trial.before, f"undone: the end came before {window.settings.shown} was judged"
        )

    def _unheard(self, window: Window, trial: _Trial) -> Decision | None:
        trial.silent += 1
        if trial.silent < _SILENT:
            return None
        self._avoid(window.settings)
        return Decision(
            trial.before,
            f"undone: {_SILENT} windows with fewer than {_FEW} answers with {window.settings.shown}; it was "
            f"{count_text(trial.rate)}/s with {trial.before.shown}",
        )

    def _judge(self, window: Window, trial: _Trial) -> Decision | None:
        if not trial.waited:  # requests from before the change are in this window
            trial.waited = True
            return None
        same_load = window.rate <= _ALIKE * trial.rate
        worse = same_load and self.latency_s > max(
            _WORSE * trial.latency_s, _NEAR * self._objective_s
        )
        if not trial.faster:
            worse = self.latency_s > _NEAR * self._objective_s
        if worse:
            self._avoid(window.settings)
            return Decision(
                trial.before,
                f"undone: {self._shown(window)} with {window.settings.shown}; with {trial.before.shown} "
                f"it was {latency_text(trial.latency_s)} at {count_text(trial.rate)}/s",
            )
        self._trial = None
        return Decision(
            None,
            f"kept: {self._shown(window)} with {window.settings.shown}; it was "
            f"{latency_text(trial.latency_s)} at {count_text(trial.rate)}/s",
        )

    def _faster(self, window: Window) -> Decision | None:
        rate = _MORE * window.rate
        here = self._estimator.latency(window.settings, rate)
        promised = {
            each: self._estimator.latency(each, rate)
            for each in self._tried()
            if each != window.settings
        }
        wanted = [each for each, latency in promised.items() if latency < _BETTER * here]
        if not wanted:
            return self._cannot(window)
        able = [each for each in wanted if promised[each] <= _NEAR * self._objective_s]
        chosen = (
            min(able, key=lambda each: each.cost)
            if able
            else min(wanted, key=lambda each: (promised[each], each.cost))
        )
        return Decision(
            chosen,
            f"{self._shown(window)} of {time_text(self._objective_s)} with {window.settings.shown}; "
            f"{self._promise(promised[chosen])} with {chosen.shown}",
        )

    def _cannot(self, window: Window) -> Decision | None:
        """Return a decision that says once that nothing helps."""
        if self._helpless:
            return None
        self._helpless = True
        return Decision(
            None,
            f"{self._shown(window)} of {time_text(self._objective_s)} with {window.settings.shown}; "
            "no other settings promise less",
        )

    def _cheaper(self, window: Window) -> Decision | None:
        rate = _GROWTH * max(self._calm[-_CALM:])
        now = window.settings
        fewer = [
            each
            for each in self._tried()
            if each.instances < now.instances and replace(each, instances=now.instances) == now
        ]
        # One step at a time: one that fails shows how far it goes.
        for each in sorted(fewer, key=lambda one: -one.instances)[:1]:
            promised = self._estimator.latency(each, rate)
            if promised <= _EASY * self._objective_s:
                return Decision(
                    each,
                    f"{self._shown(window)} of {time_text(self._objective_s)} with {window.settings.shown} "
                    f"for {_CALM} windows; {self._promise(promised)} with {each.shown}, also at "
                    f"{count_text(rate)}/s",
                    faster=False,
                )
        return None

    def _tried(self) -> list[Settings]:
        """Return the settings that may be tried now."""
        return [each for each in self._choices if self._avoided.get(each, (0, 0))[0] < self._number]

    def _avoid(self, settings: Settings) -> None:
        _, windows = self._avoided.get(settings, (0, _AVOIDED // 2))
        self._avoided[settings] = self._number + 2 * windows, 2 * windows

    def _shown(self, window: Window) -> str:
        return f"{self.name} {latency_text(self.latency_s)} at {count_text(window.rate)}/s"

    def _promise(self, seconds: float) -> str:
        return f"{time_text(seconds)} are expected" if seconds < FOREVER else "less is expected"


def latency_text(seconds: float) -> str:
    """Return an estimate for people."""
    return f"about {time_text(seconds)}" if seconds < FOREVER else "growing without end"
