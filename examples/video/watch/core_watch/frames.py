"""Frames: the responses of one request to the camera, one after the other.

model `camera` ─► [Frames] ─► VideoWatch
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING

from core.errors import CoreError

if TYPE_CHECKING:
    from core.control.models import Models
    from core.request import InferenceRequest
    from core.response import InferenceResponse


class Frames:
    """Starts a request, and yields its responses. A reader that leaves cancels it. Loop thread only.

    The request is paused while a frame is handled, and while others wait. So the next frame of a camera is
    the newest; and where every frame is wanted, frames are decoded as fast as they are handled. (The iterator
    of a Reply also pauses its request, for a slow reader. A `resume` here would end that pause: a request has
    one pause, whoever began it.)
    Raises CoreError, also one that comes with the frames.
    """

    def __init__(self, models: Models, request: InferenceRequest):
        self._request = request
        self._waiting: deque[tuple[InferenceResponse | CoreError | None, bool]] = deque()
        self._arrived = asyncio.Event()
        models.infer(request).listen(self._receive)

    def _receive(self, item: InferenceResponse | CoreError | None, final: bool) -> None:
        self._request.pause()
        self._waiting.append((item, final))
        self._arrived.set()

    async def __aiter__(self) -> AsyncGenerator[InferenceResponse, None]:
        final = False
        try:
            while not final:
                if not self._waiting:
                    self._request.resume()
                    self._arrived.clear()
                    await self._arrived.wait()
                item, final = self._waiting.popleft()
                if isinstance(item, CoreError):
                    raise item
                if item is not None:
                    yield item
        finally:
            self._request.resume()
            if not final:
                self._request.cancel()
