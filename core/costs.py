"""Costs: what the work for a request takes, such as tokens. core passes a cost on, and reads nothing of it.

backend ─► [report_cost] ─► watchers ─► a frontend, which logs the cost or charges it to the caller
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from core.request import InferenceRequest

# Beside the requests, so that one without watchers needs no field. Event loop only.
_watchers: dict[InferenceRequest, list[Callable[[Any], None]]] = {}


def watch_cost(request: InferenceRequest, watcher: Callable[[Any], None]) -> None:
    """Call `watcher` with each cost that is reported for a request, until `forget_cost`. Event loop only."""
    _watchers.setdefault(request, []).append(watcher)


def forget_cost(request: InferenceRequest) -> None:
    """Drop the watchers of a request, which has ended. Event loop only."""
    _watchers.pop(request, None)


def report_cost(request: InferenceRequest, cost: Any) -> None:
    """Report the cost of a request when its work begins. Event loop only.

    request   a step of an ensemble reports for the request of the client
    cost      its numbers may grow until the request has ended; frontend and backend agree on its form
    """
    while request.parent is not None:
        request = request.parent
    for watcher in _watchers.get(request, ()):
        watcher(cost)
