"""choose: the server for a request.

candidates ─► without those tried, ejected ─► two at random ─► the one of less cost

The best of all servers would get the requests of every router at once, until its next response. The better of
two random ones does not (Mitzenmacher, 2001).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from random import random

from core_router.servers.server_model import ServerModel


def choose(
    candidates: Sequence[ServerModel], tried: Collection[ServerModel], now_s: float
) -> ServerModel | None:
    """Return one of the candidates that were not tried; None if none is left.

    Ejected servers get no request while they are at most half of the candidates, and others are left.
    now_s   time of the monotonic clock
    """
    count = len(candidates)
    if count == 0:
        return None
    if tried or count > 2:
        return _of_many(candidates, tried, now_s)
    first = candidates[0]
    if count == 1:
        return first
    return _better(first, candidates[1], now_s)


def _of_many(
    candidates: Sequence[ServerModel], tried: Collection[ServerModel], now_s: float
) -> ServerModel | None:
    at = int(random() * len(candidates))
    other = int(random() * (len(candidates) - 1))
    first, second = (
        candidates[at],
        candidates[other + (other >= at)] if len(candidates) > 1 else None,
    )
    if (
        second is not None
        and not tried
        and first.ejected_until <= now_s
        and second.ejected_until <= now_s
    ):
        return _better(first, second, now_s)
    left = [each for each in candidates if each not in tried]
    if not left:
        return None
    ejected = [each for each in left if each.ejected_until > now_s]
    if len(ejected) * 2 <= len(candidates):
        left = [each for each in left if each.ejected_until <= now_s] or left
    return min(left, key=lambda each: each.cost(now_s))


def _better(first: ServerModel, second: ServerModel, now_s: float) -> ServerModel:
    """Return the one of less cost, one at random if they are equal."""
    if first.ejected_until > now_s and second.ejected_until <= now_s:
        return second
    if second.ejected_until > now_s and first.ejected_until <= now_s:
        return first
    one, other = first.cost(now_s), second.cost(now_s)
    if one == other:
        return first if random() < 0.5 else second
    return first if one < other else second
