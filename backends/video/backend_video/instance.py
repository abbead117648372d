"""stream: a request with a URL or a file ─► one answer for each frame."""

from __future__ import annotations

import contextlib
import itertools
import threading
from collections.abc import Generator, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from backend_video.newest import Newest
from backend_video.pictures import Pictures
from backend_video.selection import selected
from backend_video.settings import Wishes
from backend_video.source import Seen, VideoSource
from backend_video.stop import Stop, Stopped
from backend_video.tensors import DROPPED, FILE, FRAME, GAP, INDEX, NOTICE, PTS, URL
from core.backend import ModelInstance
from core.batch import Batch
from core.errors import CoreError, invalid
from core.request import InferenceRequest

if TYPE_CHECKING:
    from backend_video.backend import VideoModel


class VideoInstance(ModelInstance):
    """Decodes one stream at a time, on its own thread. So a model has as many streams as instances."""

    model: VideoModel

    def open(self) -> None:
        self._stop = Stop()
        self._request: InferenceRequest | None = None

    def stream(self, request: InferenceRequest) -> Iterator[Mapping[str, Any]]:
        self._stop, self._request = stop, _ = Stop(), request
        try:
            if not request.cancelled:
                yield from self._answers(request, stop)
        except Stopped:
            pass  # the request is over: no answer reaches its client
        finally:
            self._request = None

    def cancelled(self, batch: Batch) -> None:
        if self._request is batch.requests[0]:
            self._stop.set()

    def _answers(self, request: InferenceRequest, stop: Stop) -> Iterator[Mapping[str, Any]]:
        settings = self.model.settings
        parameters = request.parameters if request.has_parameters else {}
        wishes = settings.wishes.restricted(self.model.name, parameters)
        url, file = self._named(request)
        source = VideoSource(url, file, settings, wishes.transport, stop)
        pictures = Pictures(settings.format, wishes.max_width, wishes.max_height, settings.threads)
        frames = selected(source, wishes, stop)
        paced = self._paced(frames, wishes, source.is_camera, request, stop)
        with contextlib.closing(paced):
            for seen in itertools.islice(paced, wishes.frames or None):
                yield {
                    FRAME: pictures(seen.frame),
                    PTS: np.array([seen.pts_ns], np.int64),
                    INDEX: np.array([seen.index], np.int64),
                    GAP: np.array([seen.gap_ns], np.int64),
                    DROPPED: np.array([seen.dropped], np.int64),
                    NOTICE: np.array([seen.notice.encode()], object),
                }

    def _paced(
        self,
        frames: Generator[Seen, None, None],
        wishes: Wishes,
        is_camera: bool,
        request: InferenceRequest,
        stop: Stop,
    ) -> Generator[Seen, None, None]:
        """Yield each frame, or with the policy `latest` the newest one each time the client can take one."""
        if wishes.policy == "all" or (wishes.policy == "auto" and not is_camera):
            yield from frames
            return
        newest = Newest(frames, stop)
        try:
            while True:
                # A client is known to be behind only some time after it got a frame: wait for the next one.
                newest.wait()
                while _is_behind(request):
                    self._wait_for_client(request)
                    stop.check()
                if (seen := newest.take()) is None:
                    return
                yield seen
        finally:
            newest.close()

    def _wait_for_client(self, request: InferenceRequest) -> None:
        """Wait until the client can take a frame, or the request is over."""
        free = threading.Event()
        self.loop.call_soon_threadsafe(request.when_free, free.set)
        free.wait()

    def _named(self, request: InferenceRequest) -> tuple[str, bytes]:
        """Return the URL and the file of a request, of which one is empty."""
        found = {name: tensor.array.reshape(-1)[0] for name, tensor in request.inputs.items()}
        url, file = found.get(URL, b""), found.get(FILE, b"")
        if bool(url) == bool(file):
            what = "both" if url else "none"
            raise self._refused(
                f"a request names its video in the input '{URL}', or sends it in the input '{FILE}'; "
                f"this one has {what} of them"
            )
        try:
            return url.decode(), file
        except UnicodeDecodeError:
            raise self._refused(f"the input '{URL}' is no UTF-8 text") from None

    def _refused(self, text: str) -> CoreError:
        return invalid(f"model '{self.model.name}': {text}")


def _is_behind(request: InferenceRequest) -> bool:
    """Return whether the client reads slowly, or a later step of an ensemble is slow."""
    each: InferenceRequest | None = request
    while each is not None:
        if each.paused:
            return True
        each = each.parent
    return False
