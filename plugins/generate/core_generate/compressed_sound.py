"""CompressedSound: an MP3, MP4, FLAC, Ogg, WebM or AAC file, decoded by PyAV, if that is installed.

What a small file may ask for is bounded: its number of packets, the codecs that FFmpeg may begin (it looks at
pictures too), and the entries of an MP4 index, which FFmpeg makes when it opens the file.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from core_generate.mp4_index import claims_more

# FFmpeg's demuxer by the first bytes. Others could read further files, or connect to other machines.
_DEMUXERS = {
    b"ID3": "mp3",
    b"fLaC": "flac",
    b"OggS": "ogg",
    b"\x1aE\xdf\xa3": "matroska",
}
_ESTIMATES = ("mp3", "aac")  # their length is that of the first frames, times the size of the file
_CODECS = "aac,alac,flac,libopus,libvorbis,mp3,mp3float,opus,vorbis"
_MOST_PACKETS = 1_500_000  # an hour of Opus in its shortest frames


class CompressedSound:
    """A file that is decoded block by block. Not thread-safe. Use it as a context manager.

    rate       samples a second
    channels   of the file
    frames     how many samples each channel has, as the file says; 0 if it does not say it
    """

    def __init__(self, data: bytes):
        """Raises ValueError if FFmpeg cannot read the file, and if PyAV is not installed."""
        try:
            import av  # takes 100 ms, and few models read sound
        except ImportError:
            raise ValueError(
                "is no WAV file; install PyAV on the server to read others, `pip install av`, or convert it, "
                "such as `ffmpeg -i a.mp3 -ar 16000 a.wav`"
            ) from None
        form = demuxer(data)
        if form == "mov" and claims_more(data, _MOST_PACKETS):
            raise _too_many()
        # Of damaged files, PyAV raises the first one, or one of Python's where it knows one.
        self._errors = (av.FFmpegError, OSError, ValueError)
        self._new_resampler: Callable[[], Any] = lambda: av.AudioResampler(format="fltp")
        try:
            self._container: Any = av.open(
                io.BytesIO(data),
                format=form,
                metadata_errors="ignore",
                options={"codec_whitelist": _CODECS},
            )
        except self._errors as error:
            raise _damaged(error) from None
        try:
            self._begin(form)
        except BaseException:
            self._container.close()
            raise

    def _begin(self, form: str) -> None:
        if not self._container.streams.audio:
            raise ValueError("has no sound")
        self._stream = stream = self._container.streams.audio[0]
        context = stream.codec_context
        if context is None:
            raise ValueError("has sound of a codec that is not decoded")
        context.thread_count = 1
        self.rate: int = context.sample_rate or 0
        self.channels: int = context.channels
        if not (self.rate and self.channels):
            raise _damaged("it has no frame of sound")
        length = 0 if form in _ESTIMATES else (stream.duration or 0) * (stream.time_base or 0)
        self.frames = int(length * self.rate)

    def __enter__(self) -> CompressedSound:
        return self

    def __exit__(self, *_: object) -> None:
        self._container.close()

    def blocks(self, size: int, check: Callable[[], None]) -> Iterator[Any]:
        """Yield FP32[size], the mean of the channels; the last block may be shorter.

        check   called at each packet of the file; may raise
        Raises ValueError if FFmpeg cannot go on.
        """
        block, filled = np.empty(size, np.float32), 0
        for piece in self._pieces(check):
            while len(piece):
                taken = piece[: size - filled]
                block[filled : filled + len(taken)] = taken
                filled += len(taken)
                piece = piece[len(taken) :]
                if filled == size:
                    yield block
                    block, filled = np.empty(size, np.float32), 0
        if filled:
            yield block[:filled]

    def _pieces(self, check: Callable[[], None]) -> Iterator[Any]:
        """Yield FP32[samples] of each frame. What is damaged between others is left out, as players do."""
        channels = 0
        resampler: Any = None
        for frame in self._frames(check):
            if frame.sample_rate != self.rate:
                raise _damaged(f"its rate changes from {self.rate} to {frame.sample_rate}")
            if frame.layout.nb_channels != channels:
                channels, resampler = frame.layout.nb_channels, self._new_resampler()
            for planar in resampler.resample(frame):
                mean = planar.to_ndarray().mean(0, dtype=np.float32)
                yield np.nan_to_num(mean, copy=False, posinf=1, neginf=-1)
        if resampler is None:
            raise _damaged("it has no frame of sound")

    def _frames(self, check: Callable[[], None]) -> Iterator[Any]:
        packets = self._container.demux(self._stream)
        for _ in range(_MOST_PACKETS):
            check()
            try:
                packet = next(packets, None)
            except self._errors as error:
                raise _damaged(error) from None
            if packet is None:
                return
            try:
                frames = packet.decode()
            except self._errors:
                continue
            yield from frames
        raise _too_many()


def demuxer(data: bytes) -> str:
    """Return FFmpeg's name of the form of a file; "" for a form that is not read."""
    for begin, name in _DEMUXERS.items():
        if data.startswith(begin):
            return name
    if data[4:8] == b"ftyp":
        return "mov"
    if len(data) > 1 and data[0] == 0xFF and data[1] & 0xE0 == 0xE0:
        return "mp3" if data[1] & 0x06 else "aac"  # bits of the layer, of which AAC has none
    return ""


def _too_many() -> ValueError:
    return ValueError(f"has more than {_MOST_PACKETS} packets, or does not let them be counted")


def _damaged(error: object) -> ValueError:
    return ValueError(f"cannot be decoded: {getattr(error, 'strerror', None) or error}")
