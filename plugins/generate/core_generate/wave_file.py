"""WaveFile: the form and the samples of a WAV file."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

_PCM, _FLOAT, _EXTENSIBLE = 1, 3, 0xFFFE
_MOST_CHUNKS = 10_000  # before the samples; a few are usual
_FORM = struct.Struct("<HHIIHH")
_DTYPES = {
    (_PCM, 8): "u1",
    (_PCM, 16): "<i2",
    (_PCM, 24): "u1",
    (_PCM, 32): "<i4",
    (_FLOAT, 32): "<f4",
    (_FLOAT, 64): "<f8",
}


@dataclass(frozen=True)
class WaveFile:
    """A WAV file in memory.

    rate      samples a second
    kind      format of a sample, with `bits` bits; a key of _DTYPES
    samples   those of all channels, as they are in the file
    """

    rate: int
    channels: int
    kind: int
    bits: int
    samples: memoryview

    def __enter__(self) -> WaveFile:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    @property
    def frames(self) -> int:
        """How many samples each channel has."""
        return len(self.samples) // self._frame

    @property
    def _frame(self) -> int:
        return self.channels * self.bits // 8

    def blocks(self, size: int, check: Callable[[], None]) -> Iterator[Any]:
        """Yield FP32[size], the mean of the channels; the last block may be shorter.

        check   called at each block; may raise
        """
        end = self.frames * self._frame
        for at in range(0, end, size * self._frame):
            check()
            found = _as_float(
                self.samples[at : min(end, at + size * self._frame)], self.kind, self.bits
            )
            if self.channels > 1:
                found = found.reshape(-1, self.channels).mean(1, dtype=np.float32)
            yield found


def is_wave(data: bytes) -> bool:
    return data[:4] == b"RIFF" and data[8:12] == b"WAVE"


def read(data: bytes) -> WaveFile:
    """Return the sound of a WAV file. Raises ValueError for a damaged one, and for unknown samples."""
    form, samples = _chunks(data)
    if len(form) < _FORM.size:
        raise ValueError(f"is damaged: its chunk 'fmt ' has {len(form)} bytes, 16 are needed")
    kind, channels, rate, _, _, bits = _FORM.unpack_from(form)
    if kind == _EXTENSIBLE and len(form) >= 26:
        (kind,) = struct.unpack_from("<H", form, 24)
    if (kind, bits) not in _DTYPES:
        raise ValueError(
            f"has samples of format {kind} with {bits} bits; expected PCM with 8, 16, 24 or 32 bits, or "
            "floating point with 32 or 64"
        )
    if not channels:
        raise ValueError("has 0 channels, expected at least one")
    return WaveFile(rate, channels, kind, bits, samples)


def _chunks(data: bytes) -> tuple[bytes, memoryview]:
    """Return the chunks `fmt ` and `data`. The last one ends with the file, if not before."""
    form, at = b"", 12
    for _ in range(_MOST_CHUNKS):
        if at + 8 > len(data):
            break
        kind, (size,) = data[at : at + 4], struct.unpack_from("<I", data, at + 4)
        if kind == b"fmt ":
            form = data[at + 8 : at + 8 + size]
        elif kind == b"data":
            if not form:
                break
            return form, memoryview(data)[at + 8 : at + 8 + size]
        at += 8 + size + size % 2
    else:
        raise ValueError(
            f"has {_MOST_CHUNKS:,} chunks or more before its samples, fewer are allowed"
        )
    raise ValueError("is damaged: a WAV file has a chunk 'fmt ', then a chunk 'data'")


def _as_float(data: memoryview, kind: int, bits: int) -> Any:
    found = np.frombuffer(data, _DTYPES[kind, bits])
    if kind == _FLOAT:
        with np.errstate(over="ignore"):
            return np.nan_to_num(found.astype(np.float32), posinf=1, neginf=-1)
    if bits == 8:
        return (found.astype(np.float32) - 128) / 128
    if bits == 24:  # the upper three bytes of a whole number with 32 bits
        whole = np.zeros((len(found) // 3, 4), np.uint8)
        whole[:, 1:] = found.reshape(-1, 3)
        found, bits = whole.view("<i4").reshape(-1), 32
    return found.astype(np.float32) / np.float32(2 ** (bits - 1))
