"""ServerModel: one model on one server, with the requests that the router has sent to it.

ForwardedRequest ─► begin ─► done, failed or left ─► cost, ejection
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from core_router.servers.server import Server

# Seconds after which a duration counts for a third of what it counted for.
_MEMORY_S = 2.0
# Seconds after which a model without requests has a third of its cost: a slow past is not held against it.
_FORGETS_S = 10.0
_FIRST_S = 0.001  # duration that is assumed for a model that no server has answered for yet

FAILURES = 5
"""Failed responses in a row that eject a model of a server."""
EJECTED_S = 5.0
"""Seconds of the first ejection; each later one is as much longer."""
LONGEST_EJECTION_S = 120.0

BUCKETS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Upper bounds of the buckets of durations, in seconds."""


class ServerModel:
    """One model on one server. Event loop only.

    server          the server
    name            of the model; "" for requests without a model
    versions        that are ready, as text
    is_stateful     whether requests belong to sequences, so a server must get all of a sequence
    is_decoupled    whether a request may have any number of responses
    in_flight       requests of this router without a response
    latency_s       mean duration of the last responses
    wait_s          how long a request waits there for requests of others, by the server's last report
    ejected_until   time of the monotonic clock before which other servers are preferred
    statuses        responses by the first digit of their status
    lost            requests whose connection ended before the response did
    """

    def __init__(self, server: Server, name: str):
        self.server = server
        self.name = name
        self.versions: frozenset[str] = frozenset()
        self.is_stateful = False
        self.is_decoupled = False
        self.in_flight = 0
        self.latency_s = 0.0
        self.wait_s = 0.0
        self.ejected_until = 0.0
        self.ejections = 0
        self.statuses = [0, 0, 0, 0, 0, 0]
        self.lost = 0
        self.buckets = [0] * (len(BUCKETS_S) + 1)
        self.total_s = 0.0
        self._failures = 0
        self._sampled_s = 0.0
        self._reports_until_s = 0.0

    def begin(self) -> None:
        """Count a request that is sent to the server."""
        self.in_flight += 1
        self.server.in_flight += 1

    def left(self) -> None:
        """Count a request as gone, without a judgement: its client has left."""
        self.in_flight -= 1
        self.server.in_flight -= 1

    def done(self, status: int, duration_s: float, now_s: float) -> None:
        """Count a complete response.

        duration_s   from the request's last attempt to the end of the response
        now_s        time of the monotonic clock
        """
        self.left()
        self.statuses[status // 100] += 1
        if status >= 500:
            self._fail(now_s)
            return
        if status < 200:
            return  # the end of a tunnel says nothing about the model
        self._failures = 0
        self.total_s += duration_s
        self._count(duration_s)
        weight = math.exp((self._sampled_s - now_s) / _MEMORY_S) if self.latency_s else 0.0
        # One response never changes more than a fifth, unless it is the first in a while.
        weight = max(weight, 0.8) if self.latency_s else 0.0
        self.latency_s = self.latency_s * weight + duration_s * (1.0 - weight)
        self._sampled_s = now_s

    def failed(self, now_s: float) -> None:
        """Count a request whose connection ended before the response did."""
        self.left()
        self.lost += 1
        self._fail(now_s)

    def cost(self, now_s: float) -> float:
        """Return the estimated duration of one more request: the mean, for it and for each in flight.

        Requests of others that wait at the server come on top.
        """
        latency_s = self.latency_s or _FIRST_S
        if not self.in_flight and (idle_s := now_s - self._sampled_s) > _MEMORY_S:
            latency_s *= math.exp(-idle_s / _FORGETS_S)
        cost_s = latency_s * (self.in_flight + 1)
        return cost_s + self.wait_s if now_s < self._reports_until_s else cost_s

    def report(self, wait_s: float, until_s: float) -> None:
        """Take a report of the server.

        wait_s    how long a new request would wait
        until_s   time of the monotonic clock from which on the report is too old
        """
        # This router's own requests wait there, too.
        self.wait_s = max(0.0, wait_s - self.latency_s * self.in_flight)
        self._reports_until_s = until_s

    def expect(self, latency_s: float) -> None:
        """Begin with the mean duration of the same model on other servers."""
        if not self.latency_s:
            self.latency_s = latency_s

    def count_on(self, before: ServerModel) -> None:
        """Go on with the counts of the same model on the same server, from before it left."""
        self.statuses, self.buckets = list(before.statuses), list(before.buckets)
        self.lost, self.total_s = before.lost, before.total_s
        self.ejections = before.ejections

    def _count(self, duration_s: float) -> None:
        at = 0
        for bound in BUCKETS_S:
            if duration_s <= bound:
                break
            at += 1
        self.buckets[at] += 1

    def _fail(self, now_s: float) -> None:
        self._failures += 1
        if self._failures >= FAILURES and now_s >= self.ejected_until:
            self.ejections += 1
            self._failures = 0
            self.ejected_until = now_s + min(EJECTED_S * self.ejections, LONGEST_EJECTION_S)
