"""choose: the server for a request; choose_on: that for a request of a route, by its shares.

candidates ─► without those tried, ejected ─► two at random ─► the one of less cost

The best of all servers would get the requests of every router at once, until its next response. The better of
two random ones does not (Mitzenmacher, 2001).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from random import random

from core_router.servers.server_model import ServerModel
from core_router.servers.table import Route

_EQUAL = 1.5  # below this ratio, the mean durations of two servers say nothing


def choose(
    candidates: Sequence[ServerModel], tried: Collection[ServerModel], now_s: float
) -> ServerModel | None:
    """Return one of the candidates that were not tried; None if none is left.

    Ejected servers get no request while they are at most half of the candidates, and others are left.
    now_s   time of the monotonic clock
    """
    count = len(candidates)
    if not tried and count > 1:
        at = int(random() * count)
        other = int(random() * (count - 1))
        first, second = candidates[at], candidates[other + (other >= at)]
        if first.ejected_until <= now_s and second.ejected_until <= now_s:
            one, another = first.cost(now_s), second.cost(now_s)
            if first.in_flight == second.in_flight and another < one < another * _EQUAL:
                return first  # they are equal, and their order is random
            return first if one <= another else second
    elif not tried and count == 1:
        return candidates[0]
    return _best_left(candidates, tried, now_s)


def choose_on(route: Route, tried: tuple[ServerModel, ...], now_s: float) -> ServerModel | None:
    """Return one of the candidates of a route that were not tried; None if none is left."""
    if route.split is None:
        return choose(route.candidates, tried, now_s)
    return choose(route.split.draw(random(), tried, now_s), tried, now_s)


def _best_left(
    candidates: Sequence[ServerModel], tried: Collection[ServerModel], now_s: float
) -> ServerModel | None:
    left = [each for each in candidates if each not in tried]
    ejected = [each for each in left if each.ejected_until > now_s]
    if len(ejected) * 2 <= len(candidates):
        left = [each for each in left if each.ejected_until <= now_s] or left
    return min(left, key=lambda each: each.cost(now_s), default=None)
