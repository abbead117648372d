"""RequestQueue: the requests that wait for an instance, ordered by priority, then by arrival.

admit ─► [RequestQueue] ─► batcher.  A queue policy limits how many requests wait, and how long. The queue is
plain data: callers pass the time, and answer the requests that it returns.
Source of the rules: ModelQueuePolicy in Triton's model_config.proto, as its scheduler applies them.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice

import cython

from core.errors import unavailable
from core.request import InferenceRequest
from core.response import Reply
from core.tensor import Tensor

_PUT_BACK = -1


@dataclass(frozen=True)
class QueuePolicy:
    """Limits of one priority level.

    timeout_us      longest wait; 0 for no limit
    delay           whether a request whose timeout has passed goes behind its level, instead of being refused
    may_override    whether a request's own, shorter timeout is used (only if timeout_us is set)
    size            most requests that wait; 0 for no limit
    """

    timeout_us: int = 0
    delay: bool = False
    may_override: bool = False
    size: int = 0


QueueSettings = tuple[QueuePolicy, int, int, dict[int, QueuePolicy]]
"""The arguments of RequestQueue."""


@cython.freelist(32)
@cython.cclass
class QueuedRequest:
    """One request in the queue, with its reply.

    key         requests of one batch have equal keys
    expiry_ns   time at which its timeout passes; 0 for never, _PUT_BACK for never under any policy
    counts      False for a row that only fills a batch and has no client
    ended       called after the final item; or None
    keep        called with the tensors of a response, to take the states of a sequence out; or None
    taken       whether it has left the queue, to be executed, or because it has expired or is cancelled
    begun       whether it has got its first response, if that is counted
    """

    def __init__(self, request: InferenceRequest, reply: Reply, key: object = None):
        self.request = request
        self.reply = reply
        self.key = key
        self.level = 0
        self.expiry_ns = 0
        self.counts = True
        self.ended: Callable[[], None] | None = None
        self.keep: Callable[[list[Tensor]], None] | None = None
        self.taken = False
        self.begun = False


def new_queued_request(request: InferenceRequest, reply: Reply, key: object) -> QueuedRequest:
    """Return QueuedRequest(request, reply, key) without a call of its constructor, which is slower."""
    waiting: QueuedRequest = QueuedRequest.__new__(QueuedRequest)
    waiting.request = request
    waiting.reply = reply
    waiting.key = key
    waiting.level = waiting.expiry_ns = 0
    waiting.counts = True
    waiting.ended = waiting.keep = None
    waiting.taken = waiting.begun = False
    return waiting


class RequestQueue:
    """Queue with priority levels. Not thread-safe: call from the event loop only.

    timed   whether a policy has a timeout

    Invariants:
    1. A QueuedRequest is in exactly one of the deques while `taken` is false.
    2. `len(queue)` counts them, including expired requests in a delayed deque.
    """

    def __init__(
        self,
        policy: QueuePolicy = QueuePolicy(),
        levels: int = 0,
        default_level: int = 0,
        level_policies: dict[int, QueuePolicy] | None = None,
    ):
        self._waiting: dict[int, deque[QueuedRequest]] = {}
        self._delayed: dict[int, deque[QueuedRequest]] = {}
        self.configure(policy, levels, default_level, level_policies)

    def configure(
        self,
        policy: QueuePolicy = QueuePolicy(),
        levels: int = 0,
        default_level: int = 0,
        level_policies: dict[int, QueuePolicy] | None = None,
    ) -> None:
        """Take other levels and policies. The requests that wait stay, by level and in their order.

        Timeouts count from arrival, and delayed requests are on time again if the new policy says so. More
        requests may wait then than the new policy accepts.
        """
        lines = [*self._waiting.values(), *self._delayed.values()]
        self._levels = range(1, levels + 1) if levels else range(0, 1)
        self._default_level = default_level if levels else 0
        given = level_policies or {}
        self._policies = {level: given.get(level, policy) for level in self._levels}
        self._waiting = {level: deque() for level in self._levels}
        self._delayed = {level: deque() for level in self._levels}
        self._counts = dict.fromkeys(self._levels, 0)
        self._count = 0
        self._is_sorted = True
        self.timed = any(policy.timeout_us for policy in self._policies.values())
        # Most queues have one level without limits. They use `_line` only.
        self._simple = not levels and self._policies[0] == QueuePolicy()
        self._line: deque[QueuedRequest] = self._waiting[0] if self._simple else deque()
        for waiting in heapq.merge(*lines, key=_arrival_ns):  # each line keeps its order
            self._enter(waiting, self._level(waiting.request))

    def __len__(self) -> int:
        return self._count

    def by_level(self) -> dict[int, int]:
        """Return the number of requests in each level; {} without levels."""
        return {} if 0 in self._counts else dict(self._counts)

    def ahead_of(self, request: InferenceRequest) -> int:
        """Return how many requests run before a new one: those of its level and of levels before it."""
        if self._simple:
            return self._count
        level = self._level(request)
        ahead = 0
        for each, count in self._counts.items():
            if each <= level:
                ahead += count
        return ahead

    def _level(self, request: InferenceRequest) -> int:
        level = request.priority if request.priority in self._levels else self._default_level
        return level if level in self._counts else self._default_level

    def waits(self) -> bool:
        """Return whether a request waits."""
        return self._count > 0

    def push(self, waiting: QueuedRequest) -> None:
        """Add a request at the end of its level. Raise CoreError(UNAVAILABLE) if the level is full."""
        if self._simple:
            self._line.append(waiting)
            self._count += 1
            return
        level = self._level(waiting.request)
        policy = self._policies[level]
        if policy.size and self._counts[level] >= policy.size:
            raise unavailable("Exceeds maximum queue size")
        self._enter(waiting, level)

    def put_back(self, waiting: QueuedRequest) -> None:
        """Add a taken request again, at the end of its level: it asks for another execution.

        It is never refused and never expires.
        """
        waiting.taken = False
        waiting.expiry_ns = _PUT_BACK
        self._enter(waiting, self._level(waiting.request))

    def _enter(self, waiting: QueuedRequest, level: int) -> None:
        """Add a request at the end of a level, by the policy of the level."""
        policy, request = self._policies[level], waiting.request
        timeout_us = policy.timeout_us
        if policy.may_override and 0 < request.timeout_us < timeout_us:
            timeout_us = request.timeout_us
        waiting.level = level
        if waiting.expiry_ns != _PUT_BACK:
            waiting.expiry_ns = request.arrival_ns + timeout_us * 1000 if timeout_us else 0
        line = self._waiting[level]
        if not self._simple:
            # Requests may have waited elsewhere before, for their turn or for a look into the cache.
            late = bool(line) and 0 < waiting.expiry_ns < line[-1].expiry_ns
            self._is_sorted = not self._count or (self._is_sorted and not late)
            self._counts[level] += 1
        line.append(waiting)
        self._count += 1

    def remove(self, waiting: QueuedRequest) -> bool:
        """Remove a cancelled request. Return False if it has left the queue before."""
        if waiting.taken:
            return False
        self._leave(waiting)
        for line in (self._waiting[waiting.level], self._delayed[waiting.level]):
            try:
                line.remove(waiting)
                break
            except ValueError:
                continue
        return True

    def take(self, chosen: list[QueuedRequest]) -> None:
        """Remove `chosen`: all that `front` has returned, or the first of them."""
        if self._simple:
            self._take_from_line(chosen)
            return
        for waiting in chosen:
            self._leave(waiting)
            line = self._waiting[waiting.level]
            if line and line[0] is waiting:
                line.popleft()
            else:
                self._delayed[waiting.level].popleft()

    def _take_from_line(self, chosen: list[QueuedRequest]) -> None:
        line = self._line
        whole = len(chosen) == self._count
        for waiting in chosen:
            waiting.taken = True
            if not whole:
                line.popleft()
        if whole:
            line.clear()
        self._count -= len(chosen)

    def expire(self, now_ns: int) -> list[QueuedRequest]:
        """Remove and return the requests whose timeout has passed and whose policy refuses them.

        Requests whose policy delays them go behind all others of their level.
        """
        if not self.timed:
            return []
        refused = []
        for level in self._levels:
            delays = self._policies[level].delay
            for waiting in self._late(level, now_ns):
                self._waiting[level].remove(waiting)
                if delays:
                    self._delayed[level].append(waiting)
                else:
                    self._leave(waiting)
                    refused.append(waiting)
        return refused

    def next_expiry_ns(self) -> int:
        """Return the time at which the next request expires; 0 for never."""
        next_ns = 0
        for level in self._levels:
            policy = self._policies[level]
            if not policy.timeout_us:
                continue
            for waiting in self._waiting[level]:
                expiry_ns = waiting.expiry_ns
                if expiry_ns > 0 and (not next_ns or expiry_ns < next_ns):
                    next_ns = expiry_ns
                if expiry_ns > 0 and self._is_sorted and not policy.may_override:
                    break
        return next_ns

    def _late(self, level: int, now_ns: int) -> list[QueuedRequest]:
        """Return the requests of a level whose timeout has passed, without those that are delayed already."""
        found: list[QueuedRequest] = []
        if not self._policies[level].timeout_us:
            return found
        for waiting in self._waiting[level]:
            if waiting.expiry_ns == _PUT_BACK:
                continue
            if waiting.expiry_ns <= now_ns:
                found.append(waiting)
            elif self._is_sorted and not self._policies[level].may_override:
                break
        return found

    def in_order(self) -> Iterator[QueuedRequest]:
        """Yield the requests in the order in which they run: by level, and in each the delayed ones last."""
        for level in self._levels:
            yield from self._waiting[level]
            yield from self._delayed[level]

    def front(self, most: int) -> list[QueuedRequest]:
        """Return the first requests of `in_order`, at most `most`."""
        if self._simple:
            line = self._line
            if most == 1:
                return [line[0]] if line else []
            return list(islice(line, most))
        return list(islice(self.in_order(), most))

    def _leave(self, waiting: QueuedRequest) -> None:
        waiting.taken = True
        if not self._simple:
            self._counts[waiting.level] -= 1
        self._count -= 1


def _arrival_ns(waiting: QueuedRequest) -> int:
    return waiting.request.arrival_ns
