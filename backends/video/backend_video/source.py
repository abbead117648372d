"""Source: opens what a request names, again if it is lost, and decodes it into one row of frames."""

from __future__ import annotations

import contextlib
import io
import logging
import time
from collections.abc import Generator, Iterator
from dataclasses import dataclass

from av.video.frame import VideoFrame

from backend_video.backoff import Backoff
from backend_video.camera import Camera
from backend_video.clock import Clock
from backend_video.decoder import Decoder
from backend_video.patience import Patience
from backend_video.rules import is_file, split_url
from backend_video.settings import Settings
from backend_video.stop import Stop
from backend_video.web_file import WebFile, WebLimits, too_large
from core.errors import CoreError, Kind, unavailable

logger = logging.getLogger("core")


@dataclass
class Seen:
    """A decoded frame.

    index     of all frames that were decoded for the request, from 0
    pts_ns    its time since the first frame; it continues over lost connections
    gap_ns    time since the frame before, if the source was lost between them; else 0
    dropped   decoded frames before it that the client was too slow for
    notice    what happened before it; "" for nothing
    """

    frame: VideoFrame
    index: int
    pts_ns: int
    gap_ns: int = 0
    dropped: int = 0
    notice: str = ""


class VideoSource:
    """The source of one request. Use it on one thread.

    url    what the client named; "" if it sent a file
    file   what the client sent
    """

    def __init__(self, url: str, file: bytes, settings: Settings, transport: str, stop: Stop):
        self._url = url
        self._file = file
        self._settings = settings
        self._transport = transport
        self._stop = stop
        self._live = False
        self._web: WebFile | None = None
        self._patience = None if not url or is_file(url) else Patience(settings.timeout_s)
        self._shown = "the file of the request"

    @property
    def is_camera(self) -> bool:
        return self._url[:5].lower() == "rtsp:"

    @property
    def waited_s(self) -> float:
        """The seconds for which a server or a camera was waited for, without those of the reader."""
        return self._patience.waited_s if self._patience is not None else 0.0

    def frames(self) -> Generator[Seen, None, None]:
        """Yield all frames.

        A source that cannot be reached at the beginning is an error. One that is lost later is tried again if
        it is live, unless its server has marked the end; after `reconnect_s` that is an error, too. Raises
        CoreError, and Stopped.
        """
        clock = Clock()
        index = 0
        last = time.monotonic()
        lost: _Loss | None = None
        while True:
            try:
                with self._decoder() as decoder:
                    for frame in self._awaited(decoder.frames()):
                        gap_ns, notice = lost.told() if lost is not None else (0, "")
                        if lost is not None:
                            clock.reconnected(gap_ns)
                            lost = None
                        pts_ns = clock.time_of(frame, decoder.step_ns)
                        seen = Seen(frame, index, pts_ns, gap_ns, notice=notice)
                        if decoder.damaged:
                            told = f"{decoder.damaged} damaged packets or frames"
                            seen.notice = f"{seen.notice}; {told}" if seen.notice else told
                            decoder.damaged = 0
                        index += 1
                        yield seen
                        last = time.monotonic()
                        del frame, seen  # the decoder may use their memory again
                if not self._live or (self._web is not None and self._web.ended):
                    return
                problem = unavailable(f"'{self._shown}' has ended")
            except CoreError as error:
                if not index or not self._may_come_back(error):
                    raise
                problem = error
            if lost is None:
                lost = _Loss(problem, Backoff(self._settings.reconnect_s, self._stop), last)
                logger.info("video: lost a source: %s", problem.message)
            if not lost.backoff.wait():
                raise unavailable(
                    f"'{self._shown}' was lost, and not back after {lost.seconds:.1f} s and "
                    f"{lost.backoff.tries} tries: {problem.message}"
                )

    def _awaited(self, frames: Iterator[VideoFrame]) -> Iterator[VideoFrame]:
        """Yield the frames, and let the patience begin anew with each of them."""
        patience = self._patience
        if patience is None:
            yield from frames
            return
        while True:
            begin = time.monotonic()
            patience.begin()
            frame = next(frames, None)
            if self.is_camera:  # FFmpeg reads it
                patience.waited_s += time.monotonic() - begin
            if frame is None:
                return
            yield frame
            del frame  # the decoder may use its memory again

    def _may_come_back(self, error: CoreError) -> bool:
        """Return whether a lost source is tried again. A camera that restarts may refuse at first."""
        if self.is_camera:
            return error.kind is not Kind.FORBIDDEN
        return self._live and error.kind is Kind.UNAVAILABLE

    @contextlib.contextmanager
    def _decoder(self) -> Iterator[Decoder]:
        settings = self._settings
        if self._patience is not None:
            self._patience.begin()
        source = self._opened()
        try:
            decoder = Decoder(
                source,
                self._shown,
                self._stop,
                most_pixels=settings.most_pixels,
                threads=settings.threads,
                hardware=settings.device,
                timeout_s=settings.timeout_s,
                patience=self._patience,
                transport=self._transport,
            )
            try:
                yield decoder
            finally:
                decoder.close()
        finally:
            source.close()

    def _opened(self) -> io.IOBase | WebFile | Camera:
        settings, url = self._settings, self._url
        if not url:
            if len(self._file) > settings.most_bytes:
                raise too_large(self._shown, settings.most_bytes)
            return io.BytesIO(self._file)
        if is_file(url):
            self._shown = url
            file = settings.rules.open_file(url)
            if file.seek(0, 2) > settings.most_bytes:
                file.close()
                raise too_large(url, settings.most_bytes)
            file.seek(0)
            return file
        self._shown = split_url(url).shown
        if self.is_camera:
            place = settings.rules.place_of(url)
            camera = Camera(place, settings.rules, settings.timeout_s, self._stop)
            self._live = True
            return camera
        limits = WebLimits(settings.most_bytes, settings.timeout_s, settings.reconnect_s)
        assert self._patience is not None
        found = WebFile(url, settings.rules, limits, self._patience, self._stop)
        self._live = found.live
        self._web = found
        return found


class _Loss:
    """The time without a source.

    begin   when its last frame had been taken, by time.monotonic(): a camera may be silent before it is lost
    """

    def __init__(self, problem: CoreError, backoff: Backoff, begin: float):
        self.backoff = backoff
        self._problem = problem
        self._begin = begin

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._begin

    def told(self) -> tuple[int, str]:
        """Return the length of the loss in nanoseconds, and a text about it."""
        seconds = self.seconds
        text = f"the source was lost for {seconds:.1f} s ({self._problem.message})"
        return round(seconds * 1e9), text
