"""CompressedSound: an MP3, MP4, FLAC, Ogg, WebM or AAC file, decoded by PyAV, if that is installed."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

import numpy as np

# FFmpeg's demuxer by the first bytes. Others could read further files, or connect to other machines.
_DEMUXERS = {
    b"ID3": "mp3",
    b"fLaC": "flac",
    b"OggS": "ogg",
    b"\x1aE\xdf\xa3": "matroska",
}


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
        # Of damaged files, PyAV raises the first one, or one of Python's where it knows one.
        self._errors = (av.FFmpegError, OSError, ValueError)
        self._damage = av.InvalidDataError
        self._resampler = av.AudioResampler(format="fltp")
        try:
            form = demuxer(data)
            self._container: Any = av.open(io.BytesIO(data), format=form, metadata_errors="ignore")
        except self._errors as error:
            raise _damaged(error) from None
        if not self._container.streams.audio:
            self._container.close()
            raise ValueError("has no sound")
        self._stream = stream = self._container.streams.audio[0]
        stream.codec_context.thread_count = 1
        self.rate: int = stream.codec_context.sample_rate or 0
        self.channels: int = stream.codec_context.channels
        if not (self.rate and self.channels):
            self._container.close()
            raise _damaged("it has no frame of sound")
        length = (stream.duration or 0) * (stream.time_base or 0)
        self.frames = int(length * self.rate)

    def __enter__(self) -> CompressedSound:
        return self

    def __exit__(self, *_: object) -> None:
        self._container.close()

    def blocks(self, size: int) -> Iterator[Any]:
        """Yield FP32[size], the mean of the channels; the last block may be shorter.

        Raises ValueError if FFmpeg cannot go on.
        """
        block, filled = np.empty(size, np.float32), 0
        for piece in self._pieces():
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

    def _pieces(self) -> Iterator[Any]:
        """Yield FP32[samples] of each frame. What is damaged between others is left out, as players do."""
        found = False
        try:
            for packet in self._container.demux(self._stream):
                for frame in self._frames(packet):
                    found = True
                    if (frame.sample_rate, frame.layout.nb_channels) != (self.rate, self.channels):
                        raise ValueError("its rate or its channels change")
                    for planar in self._resampler.resample(frame):
                        mean = planar.to_ndarray().mean(0, dtype=np.float32)
                        yield np.nan_to_num(mean, copy=False, posinf=1, neginf=-1)
        except self._errors as error:
            raise _damaged(error) from None
        if not found:
            raise _damaged("it has no frame of sound")

    def _frames(self, packet: Any) -> list[Any]:
        try:
            return list(packet.decode())
        except self._damage:
            return []


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


def read(data: bytes) -> CompressedSound:
    """Return the sound of a file. Raises ValueError if it cannot be read."""
    return CompressedSound(data)


def _damaged(error: object) -> ValueError:
    return ValueError(f"cannot be decoded: {error}")
