"""Frames of a request to the camera: as fast as they are handled, and no faster."""

import asyncio
from contextlib import aclosing
from types import SimpleNamespace

import pytest

from core.errors import CoreError, unavailable
from core.request import InferenceRequest

MOST_AHEAD = 3  # frames that the camera sends before it asks whether it may


class Camera:
    """A model that sends frames in threes, and asks before each three whether the client can take more."""

    def __init__(self, frames, last=None):
        self.frames = frames
        self.last = last
        self.sent = 0
        self.request = InferenceRequest("camera", {})

    def infer(self, request):
        return SimpleNamespace(listen=lambda listener: asyncio.ensure_future(self._send(listener)))

    async def _send(self, listener):
        while self.sent < self.frames and not self.request.cancelled:
            free = asyncio.Event()
            self.request.when_free(free.set)
            await free.wait()
            for _ in range(min(MOST_AHEAD, self.frames - self.sent)):
                listener(self.sent, False)
                self.sent += 1
        listener(self.last, True)


def frames_of(camera):
    from core_watch.frames import Frames

    return aclosing(aiter(Frames(camera, camera.request)))


def test_every_frame_comes_once_and_in_order():
    camera = Camera(20)

    async def run():
        async with frames_of(camera) as frames:
            return [each async for each in frames]

    assert asyncio.run(run()) == list(range(20))
    assert not camera.request.cancelled


def test_a_slow_reader_has_no_more_frames_waiting_than_the_camera_sends_at_once():
    camera, ahead = Camera(100), []

    async def run():
        async with frames_of(camera) as frames:
            async for frame in frames:
                for _ in range(5):
                    await asyncio.sleep(0)
                ahead.append(camera.sent - frame)

    asyncio.run(run())

    assert len(ahead) == 100
    assert max(ahead) <= MOST_AHEAD


def test_the_camera_is_free_to_send_while_a_frame_is_awaited():
    camera = Camera(1)

    async def run():
        async with frames_of(camera) as frames:
            async for _ in frames:
                assert camera.request.paused
            assert not camera.request.paused

    asyncio.run(run())


def test_an_error_comes_behind_the_frames_before_it():
    camera, seen = Camera(2, unavailable("the camera is away")), []

    async def run():
        async with frames_of(camera) as frames:
            async for frame in frames:
                seen.append(frame)

    with pytest.raises(CoreError, match="the camera is away"):
        asyncio.run(run())
    assert seen == [0, 1]


def test_a_reader_that_leaves_cancels_the_request():
    camera = Camera(100)

    async def run():
        async with frames_of(camera) as frames:
            async for _ in frames:
                break
        assert camera.request.cancelled and not camera.request.paused

    asyncio.run(run())
