"""Decoder: the frames of one connection to a source, by FFmpeg in this process.

FFmpeg reads files and web servers through Python, which has checked them, and opens nothing itself: neither
the files that a playlist names nor those that a film refers to. Demuxing and decoding release the GIL.
"""

from __future__ import annotations

import contextlib
import errno
import functools
from collections.abc import Iterator
from typing import Any, Protocol

import av
import av.error
from av.video.frame import VideoFrame
from av.video.stream import VideoStream

from backend_video.camera import Camera
from backend_video.hardware import Hardware
from backend_video.patience import Patience
from backend_video.stop import Stop, Stopped
from core.errors import CoreError, invalid, unavailable

# Demuxers by FFmpeg's names. Those of playlists and of lists of files are missing on purpose.
FORMATS = (
    *("mov", "matroska", "avi", "mpegts", "mpeg", "flv", "ogg", "asf", "mxf", "nut", "gif"),
    *("h264", "hevc", "m4v", "ivf", "obu", "mpegvideo", "mjpeg", "mpjpeg", "yuv4mpegpipe"),
)
_BUFFER = 1 << 18  # bytes of one read through Python
_MOST_DAMAGED = 300  # packets in a row that cannot be decoded
_MOST_STREAMS = 16  # FFmpeg decodes some frames of each to know it
_UNKNOWN_RATE = 25


class Source(Protocol):
    """A file for FFmpeg."""

    def read(self, most: int, /) -> bytes: ...
    def seek(self, offset: int, whence: int = 0, /) -> int: ...
    def tell(self) -> int: ...
    def seekable(self) -> bool: ...
    def close(self) -> None: ...


class Decoder:
    """Decodes the first video stream of a source. Use it on one thread, and close it.

    step_ns   time of one frame, by the rate that the source tells
    damaged   packets and frames that were damaged since `damaged` was last set to 0
    """

    def __init__(
        self,
        source: Source | Camera,
        shown: str,
        stop: Stop,
        *,
        most_pixels: int,
        threads: int,
        timeout_s: float,
        patience: Patience | None = None,
        transport: str = "tcp",
        hardware: Hardware | None = None,
    ):
        """Open the source, and read as much as FFmpeg needs to know its streams.

        shown      name of the source in errors
        patience   of a source that is not of this machine
        hardware   on which it decodes; None for the CPU
        The source stays the caller's. Raises CoreError: INVALID if it has no video that can be decoded,
        UNAVAILABLE if it ends or is silent; and Stopped.
        """
        self.damaged = 0
        self._has_frames = False
        self._shown = shown
        self._stop = stop
        self._patience = patience
        self._camera = source if isinstance(source, Camera) else None
        self._reader = None if isinstance(source, Camera) else _Reader(source, stop)
        self._most_pixels = most_pixels
        self._hardware = hardware
        self._container: Any = None
        with self._translated():
            self._container = self._opened(timeout_s, transport)
        try:
            self._stream = self._chosen(threads)
        except BaseException:
            self.close()
            raise

    def frames(self) -> Iterator[VideoFrame]:
        """Yield the frames in the order of their display. Raises as the constructor does."""
        bad = 0
        with self._translated(), self._ended_early():
            for packet in self._container.demux(self._stream):
                self._stop.check()
                if self._patience is not None:
                    self._patience.check(self._shown)
                self.damaged += packet.is_corrupt
                try:
                    decoded = packet.decode()
                    bad = 0
                except av.error.InvalidDataError:
                    self.damaged += 1
                    bad += 1
                    if bad > _MOST_DAMAGED:
                        raise invalid(
                            f"'{self._shown}': {bad} packets in a row cannot be decoded"
                        ) from None
                    continue
                for frame in decoded:
                    self._check_pixels(frame.width, frame.height)
                    self.damaged += frame.is_corrupt
                    self._has_frames = True
                    yield frame
                    self._stop.check()
        self._check_source()
        if not self._has_frames:
            raise invalid(f"'{self._shown}' has no frame that can be decoded")

    def close(self) -> None:
        """Release what FFmpeg holds."""
        container, self._container = self._container, None
        if container is not None:
            container.close()

    @functools.cached_property
    def step_ns(self) -> int:
        return round(1e9 / float(self._stream.average_rate or _UNKNOWN_RATE))

    def _opened(self, timeout_s: float, transport: str) -> Any:
        options = {"max_pixels": str(self._most_pixels), "err_detect": "ignore_err"}
        hwaccel = self._hardware.accelerator(self._shown) if self._hardware is not None else None
        if self._camera is not None:
            return av.open(
                self._camera.url,
                format="rtsp",
                options=options,
                container_options={
                    "max_streams": str(_MOST_STREAMS),
                    "protocol_whitelist": "rtp,udp,tcp",
                    "rtsp_transport": transport,
                    "allowed_media_types": "video",
                    "fpsprobesize": "2",  # frames that are awaited to find the rate
                },
                timeout=timeout_s,
                hwaccel=hwaccel,
            )
        return av.open(
            self._reader,
            mode="r",
            options=options,
            container_options={
                "max_streams": str(_MOST_STREAMS),
                "format_whitelist": ",".join(FORMATS),
                "protocol_whitelist": "none",
            },
            buffer_size=_BUFFER,
            io_open=_refuse,
            metadata_errors="replace",
            hwaccel=hwaccel,
        )

    def _chosen(self, threads: int) -> VideoStream:
        streams = self._container.streams.video
        if not streams:
            raise invalid(
                f"'{self._shown}' has no video, only {len(self._container.streams)} other streams"
            )
        stream: VideoStream = streams[0]
        context = stream.codec_context
        if context is None:
            raise invalid(f"'{self._shown}': FFmpeg of this installation does not decode its video")
        hardware = self._hardware
        if hardware is not None and hardware.is_required and not context.is_hwaccel:
            raise hardware.refused(self._shown)
        self._check_pixels(context.width, context.height)
        context.options = {"max_pixels": str(self._most_pixels)}
        context.thread_count = threads
        return stream

    def _check_pixels(self, width: int, height: int) -> None:
        if width * height > self._most_pixels:
            raise invalid(
                f"'{self._shown}' has {width} x {height} pixels, more than the {self._most_pixels} of "
                "'max_megapixels' in the model's config.pbtxt"
            )

    @contextlib.contextmanager
    def _translated(self) -> Iterator[None]:
        """Turn an error of FFmpeg into the reason: of the request, of the source, or FFmpeg's own."""
        try:
            yield
        except (av.error.FFmpegError, OSError, UnicodeError) as error:
            self._stop.check()
            self._check_source()
            raise self._reason(error) from None
        except RuntimeError as error:
            # So PyAV says that a required device decodes no stream of the source.
            if self._hardware is None or type(error) is not RuntimeError:
                raise
            raise self._hardware.refused(self._shown) from None

    @contextlib.contextmanager
    def _ended_early(self) -> Iterator[None]:
        """Take what FFmpeg says about a file without its end for the end: the frames before it are whole."""
        try:
            yield
        except av.error.InvalidDataError:
            if self._reader is None or not self._reader.ended or not self._has_frames:
                raise

    def _check_source(self) -> None:
        """Raise what a read of the source has raised; FFmpeg takes that for the end of the file."""
        if self._reader is not None and self._reader.error is not None:
            raise self._reader.error
        if self._camera is not None and self._camera.problem is not None:
            raise self._camera.problem

    def _reason(self, error: BaseException) -> CoreError:
        text = getattr(error, "strerror", None) or str(error)
        if self._camera is not None:
            refused = isinstance(error, (av.error.HTTPClientError, av.error.InvalidDataError))
            if isinstance(error, av.error.ExitError):
                text = "it is silent"
            return (invalid if refused else unavailable)(f"'{self._shown}': {text}")
        if getattr(error, "errno", None) == errno.ENOMEM:
            text = f"it has more than {_MOST_STREAMS} streams, or memory is short"
        if self._container is None:
            return invalid(
                f"'{self._shown}' is no video that can be read ({text}); known formats are "
                f"{', '.join(FORMATS)}"
            )
        return invalid(f"'{self._shown}' is damaged: {text}")


class _Reader:
    """A source whose errors wait in `error`: an exception must not pass through FFmpeg's code.

    ended   whether all bytes were read
    """

    name = "video"

    def __init__(self, source: Source, stop: Stop):
        self.error: BaseException | None = None
        self.ended = False
        self._source = source
        self._stop = stop

    def read(self, most: int) -> bytes:
        if self.error is None:
            try:
                self._stop.check()
                found = self._source.read(most)
                self.ended = self.ended or not found
                return found
            except (CoreError, Stopped) as error:
                self.error = error
            except Exception as error:
                self.error = unavailable(f"the video cannot be read: {error}")
        return b""

    def seek(self, offset: int, whence: int = 0) -> int:
        try:
            return self._source.seek(offset, whence)
        except (OSError, ValueError):
            return -1

    def tell(self) -> int:
        return self._source.tell()

    def seekable(self) -> bool:
        return self._source.seekable()


def _refuse(url: str, flags: int, options: dict[str, str]) -> Any:
    raise PermissionError("a film must not open other files")
