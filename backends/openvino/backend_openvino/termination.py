"""What ends a run for which nobody waits any more."""

from __future__ import annotations

import asyncio
from typing import Any

from core import termination
from core.batch import Batch

_AGAIN_S = 0.02  # until OpenVINO is told once more


class Termination(termination.Termination):
    """Breaks off the runs of one infer request, which OpenVINO does between two operations."""

    def __init__(self, request: Any, loop: asyncio.AbstractEventLoop):
        super().__init__()
        self._request = request
        self._loop = loop

    def now(self, batch: Batch) -> bool:
        runs = super().now(batch)
        if runs:  # OpenVINO forgets what it is told shortly before it begins
            self._loop.call_later(_AGAIN_S, self.now, batch)
        return runs

    def stop(self) -> None:
        self._request.cancel()
