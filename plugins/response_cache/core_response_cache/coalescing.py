"""Coalescing: a cache in which equal requests that come together run once.

The first of them leads: it runs. The others follow: they wait for its response, without a place in the queue.

    leads ─► [Coalescing] ─► the cache: found, or runs ─► stored, and sent to those that follow
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from core.caches import Cache, Found
from core.errors import CoreError, Kind
from core.request import InferenceRequest
from core.tensor import Tensor

_OF_ONE = {Kind.CANCELLED, Kind.DEADLINE_EXCEEDED}  # errors that say nothing of equal requests
_REFUSED = {Kind.EXHAUSTED, Kind.UNAVAILABLE}  # those that came before would be refused too

Place = tuple[bytes, int, int]
"""What requests have in common that run once: the key, the priority, the timeout in µs.

With another priority or timeout, a request would wait for one that is served later than itself.
"""


@dataclass(slots=True, eq=False)
class _Follower:
    """A request that waits for an equal one. leave: its listener for a cancellation."""

    request: InferenceRequest
    found: Found
    leave: Callable[[], None]


@dataclass(slots=True)
class _Group:
    """Equal requests of this moment."""

    leader: InferenceRequest
    followers: dict[InferenceRequest, _Follower] = field(default_factory=dict)


class Coalescing(Cache):
    """Gives one execution to equal requests, for models with any cache. Event loop only.

    inner    the cache that stores the responses
    shared   requests that were answered by the execution of another one, since the start
    """

    def __init__(self, inner: Cache):
        super().__init__()
        self.inner = inner
        self.counters = inner.counters
        self.shared = 0
        self._groups: dict[Place, _Group] = {}
        self._following = 0  # requests

    def ask_for(self, request: InferenceRequest, key: bytes, found: Found) -> None:
        """Look a response up; if an equal request does so or runs, wait for its end."""
        place = _place(request, key)
        group = self._groups.get(place)
        if group is None:
            self._lead(place, request, found)
        else:
            self._follow(group, request, found)

    def _lead(self, place: Place, request: InferenceRequest, found: Found) -> None:
        self._groups[place] = _Group(request)

        def answered(outputs: list[Tensor] | CoreError | None) -> None:
            followers = [] if outputs is None else self._ended(request, place)
            found(outputs)
            if isinstance(outputs, list):
                self._give(followers, outputs)
            else:
                self._again(followers, place[0])

        self.inner.ask_for(request, place[0], answered)

    def _follow(self, group: _Group, request: InferenceRequest, found: Found) -> None:
        def leave() -> None:
            del group.followers[request]
            self._following -= 1
            found(None)  # a cancelled request ends here

        group.followers[request] = _Follower(request, found, leave)
        self._following += 1
        request.on_cancel(leave)

    def insert_for(self, request: InferenceRequest, key: bytes, outputs: list[Tensor]) -> None:
        """Store a response, and answer those that wait for it."""
        followers = self._ended(request, _place(request, key))
        if followers:
            # Copies: the memory may be used again. What is bytes already is taken without a copy.
            outputs = [Tensor(t.name, t.dtype, t.shape, raw=bytes(t.raw)) for t in outputs]
        self.inner.insert_for(request, key, outputs)
        self._give(followers, outputs)

    def lost(self, request: InferenceRequest, key: bytes, error: CoreError | None) -> None:
        """Let those that follow fail with the same error, or try again if that may help."""
        followers = self._ended(request, _place(request, key))
        self.inner.lost(request, key, error)
        again = []
        for each in followers:
            later = each.request.arrival_ns > request.arrival_ns
            if error is None or error.kind in _OF_ONE or (later and error.kind in _REFUSED):
                again.append(each)
            else:
                each.found(error)
        self._again(again, key)

    def _give(self, followers: list[_Follower], outputs: list[Tensor]) -> None:
        self.shared += len(followers)
        self.counters.lookups += len(followers)
        self.counters.hits += len(followers)
        for each in followers:
            each.found(outputs)

    def _again(self, followers: list[_Follower], key: bytes) -> None:
        """Look up again. The newest leads: it may wait for longest."""
        loop = asyncio.get_running_loop()
        for each in reversed(followers):  # later: it may be refused at once, and the next one tries
            loop.call_soon(self.ask_for, each.request, key, each.found)

    def _ended(self, request: InferenceRequest, place: Place) -> list[_Follower]:
        """Return the requests that follow a leader, which has ended; none if this one does not lead."""
        group = self._groups.get(place)
        if group is None or group.leader is not request:
            return []
        del self._groups[place]
        self._following -= len(group.followers)
        followers = list(group.followers.values())
        for each in followers:
            each.request.off_cancel(each.leave)
        return followers

    def may_hold(self, size: int) -> bool:
        """Return whether a response may be stored, or may have requests that wait for it."""
        return self._following > 0 or self.inner.may_hold(size)

    def fill(self) -> tuple[int, float] | None:
        """Return the number of stored responses and the used share of the space; None if unknown."""
        return self.inner.fill()

    async def close(self) -> None:
        """Close the cache."""
        await self.inner.close()


def _place(request: InferenceRequest, key: bytes) -> Place:
    return key, request.priority, request.timeout_us
