"""End a run after all requests of its batch are cancelled."""

from __future__ import annotations

import asyncio
from typing import Any

from core import termination
from core.batch import Batch

_AGAIN_S = 0.02  # time between two calls of cancel


class Termination(termination.Termination):
    """Cancel the runs of one infer request. OpenVINO ends a run between two operations."""

    def __init__(self, request: Any, loop: asyncio.AbstractEventLoop):
        super().__init__()
        self._request = request
        self._loop = loop

    def now(self, batch: Batch) -> bool:
        runs = super().now(batch)
        if runs:  # OpenVINO loses a cancel that comes shortly before the run begins
            self._loop.call_later(_AGAIN_S, self.now, batch)
        return runs

    def stop(self) -> None:
        self._request.cancel()
