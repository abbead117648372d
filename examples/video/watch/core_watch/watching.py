"""Watching: the videos of one server. VideoWatch: sends the frames of one through detector and tracker.

model `camera` ─► frame ─► [VideoWatch] ─► model `track_frame`, in the sequence of the video ─► event

An ensemble with `camera` as its first step could not do that: each frame would have the flags of the one
request, and so begin new tracks. Here the first frame has SEQUENCE_START, and a last request to the tracker
SEQUENCE_END. Frames of several videos share the batches of the models.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import time
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson

from core.errors import CoreError, internal, invalid
from core.request import SEQUENCE_END, SEQUENCE_START, InferenceRequest
from core.tensor import Tensor
from core_watch.frames import Frames
from core_watch.listeners import Events, Pictures
from core_watch.silence import Silence

if TYPE_CHECKING:
    from core.response import InferenceResponse
    from core.server import InferenceServer

logger = logging.getLogger("core")

CAMERA, TRACK, TRACKER, SHOW = "camera", "track_frame", "follow_objects", "show_tracks"

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.2, 5.0  # before a video is tried again
_LOAD_S = 30.0  # for the models to load
_FORGET_NS = (
    5_000_000_000  # without a frame: new tracks begin; the tracker forgets after ten seconds
)
_LOOK_S = 0.5  # how often a camera is checked for silence


class Watching:
    """The videos of one server, by name. Loop thread only."""

    def __init__(self, server: InferenceServer):
        self._server = server
        self._tasks: list[asyncio.Task[None]] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self.videos: dict[str, VideoWatch] = {}
        self.events = Events()

    def add(self, name: str, url: str) -> None:
        """Watch a video from `start` on. Raises CoreError(INVALID) for a name that is there."""
        if name in self.videos:
            raise invalid(f"--watch names '{name}' twice")
        self.videos[name] = VideoWatch(self._server, name, url, self.events)

    def start(self) -> None:
        """Begin to watch, as soon as the models serve."""
        self._loop = loop = asyncio.get_running_loop()
        self._tasks = [loop.create_task(each.run()) for each in self.videos.values()]
        self._tasks.append(loop.create_task(self._look()))

    def unloads(self, model: str) -> None:
        """End the requests to the camera if it is `model`: they would keep it loaded. New ones follow.

        No effect on the loop of another server of this process.
        """
        if model == CAMERA and self._loop is asyncio.get_running_loop():
            for video in self.videos.values():
                video.give_up()

    async def _look(self) -> None:
        while True:
            await asyncio.sleep(_LOOK_S)
            for video in self.videos.values():
                video.look()

    def end(self) -> None:
        """Cancel the requests to the camera, and end all events and pictures."""
        for task in self._tasks:
            task.cancel()
        self.events.end()
        for video in self.videos.values():
            video.pictures.end()

    async def close(self) -> None:
        """Wait until all has ended."""
        self.end()
        await asyncio.gather(*self._tasks, return_exceptions=True)


class VideoWatch:
    """One video. Loop thread only.

    frames    that have been answered
    losses    how often the source was lost
    trouble   why it is not watched now; "" if it is
    """

    def __init__(self, server: InferenceServer, name: str, url: str, events: Events):
        self.name = name
        self.frames = 0
        self.losses = 0
        self.trouble = "not yet begun"
        self.pictures = Pictures()
        self._models = server.models
        self._url = np.array([url.encode()], object)
        self._events = events
        self._runs = itertools.count(1)
        self._drawing: asyncio.Task[None] | None = None
        self._undrawn = ""  # why there is no picture
        self._request: InferenceRequest | None = None
        self._gave_up = False
        self._silence = Silence()

    async def run(self) -> None:
        """Watch the video until this task is cancelled. A source that ends or fails is tried again."""
        pause_s = _FIRST_PAUSE_S
        await self._loaded()
        while True:
            before = self.frames
            try:
                await self._watch()
                trouble = "the video has ended"
            except CoreError as error:
                trouble = error.message
            except Exception as error:
                trouble = f"an error of the plugin: {error!r}"
                logger.debug("watch: '%s'", self.name, exc_info=True)
            if self._gave_up:
                self._gave_up = False
                trouble = f"model '{CAMERA}' is unloaded, or loaded anew"
            self._tell(trouble)
            pause_s = _FIRST_PAUSE_S if self.frames > before else min(2 * pause_s, _LONGEST_PAUSE_S)
            await asyncio.sleep(pause_s)

    def give_up(self) -> None:
        """End the request to the camera. `run` begins a new one."""
        if self._request is not None:
            self._gave_up = True
            self._request.cancel()

    def look(self) -> None:
        """Tell it if no frame has come for long."""
        if not self.trouble and self._silence.is_too_long:
            self._tell(f"no frame for more than {self._silence.patience_s:.0f} s")

    def _tell(self, trouble: str) -> None:
        if trouble != self.trouble:
            self.trouble = trouble
            logger.warning("watch: '%s': %s", self.name, trouble)
            self._events.send(orjson.dumps({"video": self.name, "trouble": trouble}))

    async def _loaded(self) -> None:
        """Wait until the models serve. If they do not in time, the first request says what is missing."""
        end_s = time.monotonic() + _LOAD_S
        while time.monotonic() < end_s:
            try:
                if all(self._models.is_ready(name) for name in (CAMERA, TRACK)):
                    return
            except CoreError:
                pass  # it is still unknown
            await asyncio.sleep(_FIRST_PAUSE_S)

    async def _watch(self) -> None:
        """Answer each frame of one request to the camera. Raises CoreError."""
        self._request = request = InferenceRequest(CAMERA, {"url": Tensor.of("url", self._url)})
        tracks = _Tracks(self._models, self.name, next(self._runs))
        silence = self._silence = Silence()
        try:
            async with aclosing(aiter(Frames(self._models, request))) as frames:
                async for frame in frames:
                    came_ns = time.monotonic_ns()
                    gap_ns = int(frame.output("gap").array[0])
                    self.losses += gap_ns > 0
                    # A camera may also fall silent for a while, and keep its connection.
                    if silence.end(came_ns, gap_ns) > _FORGET_NS:
                        tracks.end()
                        tracks = _Tracks(self._models, self.name, next(self._runs))
                    found = await tracks.of(frame)
                    self._answered(frame, found, tracks.run, came_ns)
                    silence.begin()
        finally:
            self._request, self._silence = None, Silence()
            tracks.end()

    def _answered(
        self, frame: InferenceResponse, found: InferenceResponse, run: int, came_ns: int
    ) -> None:
        if self._events.wanted:
            self._events.send(orjson.dumps(self._event(frame, found, run, came_ns)))
        self.frames += 1
        self.trouble = ""
        if self.pictures.wanted and (self._drawing is None or self._drawing.done()):
            self._drawing = asyncio.ensure_future(self._draw(frame, found))

    def _event(
        self, frame: InferenceResponse, found: InferenceResponse, run: int, came_ns: int
    ) -> dict[str, Any]:
        facts = {
            name: int(frame.output(name).array[0]) for name in ("index", "pts", "gap", "dropped")
        }
        names = ("ids", "labels", "scores", "boxes")
        rows = (each.array[0].tolist() for each in _outputs(TRACK, found, names).values())
        return {
            "video": self.name,
            "run": run,
            **facts,
            "notice": frame.output("notice").array[0].decode(),
            "ms": (time.monotonic_ns() - came_ns) / 1e6,
            "tracks": [
                {"id": id, "label": label.decode(), "score": round(score, 4), "box": box}
                for id, label, score, box in zip(*rows, strict=True)
                if id >= 0  # else it is too young for a track
            ],
        }

    async def _draw(self, frame: InferenceResponse, found: InferenceResponse) -> None:
        """Make a picture of a frame and its tracks. The next frame does not wait for it."""
        try:
            inputs = _outputs(TRACK, found, ("boxes", "labels", "ids"))
            drawn = await self._models.infer(
                InferenceRequest(SHOW, {"frame": _batched(frame.output("frame")), **inputs})
            )
            picture = _outputs(SHOW, drawn, ("picture",))["picture"]
        except CoreError as error:
            if error.message != self._undrawn:  # else each frame would be told
                self._undrawn = error.message
                logger.warning("watch: no picture of '%s': %s", self.name, error.message)
            return
        self._undrawn = ""
        self.pictures.send(bytes(picture.array[0, 0]))


class _Tracks:
    """The tracks of one run of a video: one sequence of the tracker."""

    def __init__(self, models: Any, video: str, run: int):
        self.run = run
        self._models = models
        self._sequence = f"{video}/{run}"
        self._flags = SEQUENCE_START

    async def of(self, frame: InferenceResponse) -> InferenceResponse:
        """Return boxes, scores, labels and ids of a frame. Raises CoreError."""
        request = InferenceRequest(
            TRACK,
            {"frame": _batched(frame.output("frame"))},
            correlation_id=self._sequence,
            flags=self._flags,
        )
        self._flags = 0
        found: InferenceResponse = await self._models.infer(request)
        return found

    def end(self) -> None:
        """Let the tracker forget them: with a frame without objects, since no other one follows."""
        if self._flags & SEQUENCE_START:
            return  # it knows nothing of them
        self._flags = SEQUENCE_START
        nothing = {
            "boxes": np.zeros((1, 0, 4), np.float32),
            "scores": np.zeros((1, 0), np.float32),
            "classes": np.zeros((1, 0), np.int32),
        }
        request = InferenceRequest(
            TRACKER,
            {name: Tensor.of(name, array) for name, array in nothing.items()},
            correlation_id=self._sequence,
            flags=SEQUENCE_END,
        )
        try:
            self._models.infer(request).listen(lambda item, final: None)
        except CoreError:
            pass  # it is away, and its tracks with it


def _outputs(model: str, answer: InferenceResponse, names: tuple[str, ...]) -> dict[str, Tensor]:
    """Return outputs of an answer of a model. Raises CoreError(INTERNAL) if it lacks one."""
    found = {each.name: each for each in answer.outputs}
    for name in names:
        if name not in found:
            raise internal(
                f"model '{model}' has the outputs {sorted(found)}; expected '{name}' too"
            )
    return {name: found[name] for name in names}


def _batched(tensor: Tensor) -> Tensor:
    return tensor.reshaped((1, *tensor.shape))
