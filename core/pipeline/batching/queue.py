"""Requests that wait for an instance, by priority and within it by arrival.

admit ─► [RequestQueue] ─► batcher.  A queue policy bounds how many wait and for how long. Pure data:
time comes in as an argument, and nothing is answered here.
Source of the rules: ModelQueuePolicy in Triton's model_config.proto, as its scheduler applies them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice

import cython

from core.errors import unavailable
from core.request import InferenceRequest
from core.response import Reply
from core.tensor import Tensor


@dataclass(frozen=True)
class QueuePolicy:
    """How one priority level waits.

    timeout_us      longest wait; 0 for no bound
    delay           a request whose time has passed waits behind those of its level, instead of being refused
    may_override    a request's own, shorter timeout counts (only where timeout_us is set)
    size            most requests that wait; 0 for no bound
    """

    timeout_us: int = 0
    delay: bool = False
    may_override: bool = False
    size: int = 0


@cython.freelist(32)
@cython.cclass
class Waiting:
    """One request in the queue."""

    def __init__(self, request: InferenceRequest, reply: Reply, key: object = None):
        self.request = request
        self.reply = reply
        self.key = key  # requests of one batch share it
        self.level = 0
        self.expiry_ns = 0  # 0: never
        self.counts = True  # False for a row that only fills a batch: nobody waits for it
        self.ended: Callable[[], None] | None = None  # told when the final answer has been given
        # Takes the states of a sequence out of an answer; None where nothing is kept.
        self.keep: Callable[[list[Tensor]], None] | None = None
        self.taken = False  # has left the queue: for execution, expired or cancelled
        self.begun = False  # has got its first answer, where that is counted


def made_waiting(request: InferenceRequest, reply: Reply, key: object) -> Waiting:
    """Waiting(…) for who makes one for every request."""
    waiting: Waiting = Waiting.__new__(Waiting)
    waiting.request = request
    waiting.reply = reply
    waiting.key = key
    waiting.level = waiting.expiry_ns = 0
    waiting.counts = True
    waiting.ended = waiting.keep = None
    waiting.taken = waiting.begun = False
    return waiting


class RequestQueue:
    """Requests by priority level. Loop thread only.

    timed   whether a policy bounds how long a request may wait

    Invariants:
    1. A Waiting is in exactly one of the deques while `taken` is false.
    2. `len(queue)` counts those, expired ones in a delayed deque included.
    """

    def __init__(
        self,
        policy: QueuePolicy = QueuePolicy(),
        levels: int = 0,
        default_level: int = 0,
        level_policies: dict[int, QueuePolicy] | None = None,
    ):
        self._levels = range(1, levels + 1) if levels else range(0, 1)
        self._default_level = default_level if levels else 0
        given = level_policies or {}
        self._policies = {level: given.get(level, policy) for level in self._levels}
        self._waiting: dict[int, deque[Waiting]] = {level: deque() for level in self._levels}
        self._delayed: dict[int, deque[Waiting]] = {level: deque() for level in self._levels}
        self._counts = dict.fromkeys(self._levels, 0)
        self._count = 0
        self.timed = any(policy.timeout_us for policy in self._policies.values())
        # One line without bounds, as most have: nothing but the line is looked at.
        self._simple = not levels and self._policies[0] == QueuePolicy()
        self._line: deque[Waiting] = self._waiting[0] if self._simple else deque()

    def __len__(self) -> int:
        return self._count

    def by_level(self) -> dict[int, int]:
        """How many wait in each level; empty without levels."""
        return {} if 0 in self._counts else dict(self._counts)

    def ahead_of(self, request: InferenceRequest) -> int:
        """How many requests run before one that comes now: those of its level and of higher ones."""
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
        """Whether there is a request."""
        return self._count > 0

    def push(self, waiting: Waiting) -> None:
        """Add a request at the end of its level.

        Raises CoreError(UNAVAILABLE) if the level is full.
        """
        if self._simple:
            self._line.append(waiting)
            self._count += 1
            return
        request = waiting.request
        level = self._level(request)
        policy = self._policies[level]
        if policy.size and self._counts[level] >= policy.size:
            raise unavailable("Exceeds maximum queue size")
        timeout_us = policy.timeout_us
        if policy.may_override and 0 < request.timeout_us < timeout_us:
            timeout_us = request.timeout_us
        waiting.level = level
        waiting.expiry_ns = request.arrival_ns + timeout_us * 1000 if timeout_us else 0
        self._waiting[level].append(waiting)
        self._counts[level] += 1
        self._count += 1

    def put_back(self, waiting: Waiting) -> None:
        """Add a request again that was taken and asks for another execution; it is never refused,
        nor does it expire.
        """
        waiting.taken = False
        waiting.expiry_ns = 0
        self._waiting[waiting.level].append(waiting)
        if not self._simple:
            self._counts[waiting.level] += 1
        self._count += 1

    def remove(self, waiting: Waiting) -> bool:
        """Take a request out (it was cancelled). False if it is not in the queue any more."""
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

    def take(self, chosen: list[Waiting]) -> None:
        """Take out requests that `in_order` gave, from its beginning on."""
        if self._simple:
            self._take_simply(chosen)
            return
        for waiting in chosen:
            self._leave(waiting)
            line = self._waiting[waiting.level]
            if line and line[0] is waiting:
                line.popleft()
            else:
                self._delayed[waiting.level].popleft()

    def _take_simply(self, chosen: list[Waiting]) -> None:
        line = self._line
        whole = len(chosen) == self._count
        for waiting in chosen:
            waiting.taken = True
            if not whole:
                line.popleft()
        if whole:
            line.clear()
        self._count -= len(chosen)

    def expire(self, now_ns: int) -> list[Waiting]:
        """Requests whose time has passed and whose policy refuses them; they leave the queue.

        Those whose policy delays them go behind all others of their level.
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
        """When `expire` has something to do next; 0 for never."""
        next_ns = 0
        for level in self._levels:
            policy = self._policies[level]
            if not policy.timeout_us:
                continue
            for waiting in self._waiting[level]:
                expiry_ns = waiting.expiry_ns
                if expiry_ns and (not next_ns or expiry_ns < next_ns):
                    next_ns = expiry_ns
                if expiry_ns and not policy.may_override:
                    break
        return next_ns

    def _late(self, level: int, now_ns: int) -> list[Waiting]:
        """Requests of a level whose time has passed; those of the delayed line are no more counted.

        Without times of their own all wait equally long, so the first that is in time ends the search:
        the longer the line, the less time there is for one.
        """
        policy = self._policies[level]
        found: list[Waiting] = []
        if not policy.timeout_us:
            return found
        for waiting in self._waiting[level]:
            if not waiting.expiry_ns:  # it was put back
                continue
            if waiting.expiry_ns <= now_ns:
                found.append(waiting)
            elif not policy.may_override:
                break
        return found

    def in_order(self) -> Iterator[Waiting]:
        """Requests in the order in which they are to run: by level, then arrival; delayed ones last."""
        for level in self._levels:
            yield from self._waiting[level]
            yield from self._delayed[level]

    def front(self, most: int) -> list[Waiting]:
        """The first `most` requests of `in_order`, fewer if there are no more."""
        if self._simple:
            line = self._line
            if most == 1:
                return [line[0]] if line else []
            return list(islice(line, most))
        return list(islice(self.in_order(), most))

    def _leave(self, waiting: Waiting) -> None:
        waiting.taken = True
        if not self._simple:
            self._counts[waiting.level] -= 1
        self._count -= 1
