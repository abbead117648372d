"""Hedging: when a second copy of a request is sent to another server.

durations of a model ─► [Hedging] ─► when there is a second copy, and whether the budget has one

A request that waits longer than most do has met a server that is slow for a moment; another one is likely not
(Dean and Barroso, "The Tail at Scale", 2013).
"""

from __future__ import annotations

from collections import deque

_MOST_DURATIONS = 1000  # of a model that are kept
_LEAST_DURATIONS = 100  # before there is a quantile
_RENEWED_AFTER = 50  # durations
_RESERVE = 10.0  # copies at once, also without requests before them
_MOST_MODELS = 1000


class _Durations:
    """The last durations of one model in seconds, and a quantile of them."""

    def __init__(self) -> None:
        self.delay_s = 0.0
        self._last: deque[float] = deque(maxlen=_MOST_DURATIONS)
        self._new = 0

    def add(self, duration_s: float, quantile: float) -> None:
        self._last.append(duration_s)
        self._new += 1
        if self._new >= _RENEWED_AFTER and len(self._last) >= _LEAST_DURATIONS:
            self._new = 0
            ordered = sorted(self._last)
            self.delay_s = ordered[min(int(quantile * len(ordered)), len(ordered) - 1)]


class NoHedge:
    """Stands for the copy of a request that has none."""

    is_sent = False

    def end(self) -> None:
        pass

    def take_over(self) -> bool:
        return False


NO_HEDGE = NoHedge()


class Hedging:
    """Decides on copies of requests. Event loop only.

    quantile   of the durations of a model after which a request gets a copy
    share      copies per request that are permitted in the long run
    sent, won  copies so far; those that answered first
    """

    def __init__(self, quantile: float, share: float) -> None:
        self.quantile, self.share = quantile, share
        self.sent = self.won = 0
        self._models: dict[str, _Durations] = {}
        self._tokens = _RESERVE

    def begin(self, model: str) -> float:
        """Count a request; return the seconds after which it gets a copy, 0 for never."""
        self._tokens = min(_RESERVE, self._tokens + self.share)
        found = self._models.get(model)
        return found.delay_s if found is not None else 0.0

    def take(self) -> bool:
        """Take a copy from the budget. Return False if there is none."""
        if self._tokens < 1.0:
            return False
        self._tokens -= 1.0
        self.sent += 1
        return True

    def answered(self, model: str, duration_s: float) -> None:
        """Count the duration of a request that has succeeded, from its first copy to the answer."""
        found = self._models.pop(model, None) or _Durations()
        if len(self._models) >= _MOST_MODELS:
            del self._models[next(iter(self._models))]  # the one that was used least recently
        self._models[model] = found  # at the end
        found.add(duration_s, self.quantile)
