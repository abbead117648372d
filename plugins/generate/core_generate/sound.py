"""Decodes WAV files to what models of speech read: one channel of 16,000 samples a second.

file ─► format and samples ─► FP32[samples] from -1 to 1 ─► mean of the channels ─► resampled
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import numpy as np

from core.errors import CoreError, cancelled, invalid
from core_generate.engine import never

RATE = 16_000  # samples a second
MOST_SECONDS = 3600
MOST_CHANNELS = 8
RATES = (4_000, 192_000)  # of files
_SHORTEST = RATE // 10  # samples; encoders make no token of fewer
_PCM, _FLOAT, _EXTENSIBLE = 1, 3, 0xFFFE
_BLOCK_S = 30  # of sound that is resampled at once
_EDGE_S = (
    1  # on each side of a block; its samples are dropped, because blocks are taken for periodic
)
_FORM = struct.Struct("<HHIIHH")


def decode(data: bytes, name: str, stopped: Callable[[], bool] = never) -> Any:
    """Return the sound of a WAV file as FP32[samples] at RATE, from -1 to 1.

    name      of the input, for errors
    stopped   whether the request is cancelled; asked at each 30 seconds of sound that are resampled, and at
              the end
    Raises CoreError(INVALID) for a file that is no WAV file with PCM or floating-point samples, and beyond
    the bounds of seconds, channels and rate, which are checked before anything is decoded; and
    CoreError(CANCELLED).
    """
    if data[:4] != b"RIFF" or data[8:12] != b"WAVE":
        raise _wrong(
            name, "is no WAV file; convert others first, such as `ffmpeg -i a.mp3 -ar 16000 a.wav`"
        )
    form, samples = _chunks(data, name)
    kind, channels, rate, bits = _read_form(form, name)
    frame = channels * bits // 8
    frames = len(samples) // frame
    if frames > rate * MOST_SECONDS:
        raise _wrong(
            name, f"has {frames / rate:.0f} seconds of sound, at most {MOST_SECONDS} are accepted"
        )
    found = _as_float(samples[: frames * frame], kind, bits)
    if channels > 1:
        found = found.reshape(-1, channels).mean(1, dtype=np.float32)
    found = np.clip(resampled(found, rate, stopped), -1, 1)
    _check_wanted(stopped)
    return found


def resampled(samples: Any, rate: int, stopped: Callable[[], bool] = never) -> Any:
    """Return FP32[samples] at RATE, from FP32[samples] at `rate`, without the frequencies that RATE lacks.

    stopped   as of `decode`
    """
    if rate == RATE:
        return samples
    block, edge = _BLOCK_S * rate, _EDGE_S * rate
    extended = np.pad(samples, (edge, block + edge))
    made = []
    for at in range(0, len(samples), block):
        _check_wanted(stopped)
        spectrum = np.fft.rfft(extended[at : at + block + 2 * edge])
        length = (_BLOCK_S + 2 * _EDGE_S) * RATE
        wave = np.fft.irfft(spectrum[: length // 2 + 1], length) * (RATE / rate)
        made.append(wave[_EDGE_S * RATE : -_EDGE_S * RATE].astype(np.float32))
    count = -(-len(samples) * RATE // rate)
    return np.concatenate(made)[:count] if made else samples


def padded(samples: Any) -> Any:
    """Return FP32[samples] at RATE; silence follows a sound that is too short for an encoder."""
    return np.pad(samples, (0, max(0, _SHORTEST - len(samples))))


def _check_wanted(stopped: Callable[[], bool]) -> None:
    if stopped():
        raise cancelled()


def _chunks(data: bytes, name: str) -> tuple[bytes, memoryview]:
    """Return the chunks `fmt ` and `data`. The last one ends with the file, if not before."""
    form, at = b"", 12
    while at + 8 <= len(data):
        kind, (size,) = data[at : at + 4], struct.unpack_from("<I", data, at + 4)
        if kind == b"fmt ":
            form = data[at + 8 : at + 8 + size]
        elif kind == b"data":
            if not form:
                break
            return form, memoryview(data)[at + 8 : at + 8 + size]
        at += 8 + size + size % 2
    raise _wrong(name, "is damaged: a WAV file has a chunk 'fmt ', then a chunk 'data'")


def _read_form(form: bytes, name: str) -> tuple[int, int, int, int]:
    """Return format, channels, rate and bits. Raises CoreError(INVALID) for what `decode` does not accept."""
    if len(form) < _FORM.size:
        raise _wrong(name, f"is damaged: its chunk 'fmt ' has {len(form)} bytes, 16 are needed")
    kind, channels, rate, _, _, bits = _FORM.unpack_from(form)
    if kind == _EXTENSIBLE and len(form) >= 26:
        (kind,) = struct.unpack_from("<H", form, 24)
    if (kind, bits) not in _DTYPES:
        raise _wrong(
            name,
            f"has samples of format {kind} with {bits} bits; expected PCM with 8, 16, 24 or 32 bits, or "
            "floating point with 32 or 64",
        )
    if not 1 <= channels <= MOST_CHANNELS:
        raise _wrong(name, f"has {channels} channels, expected 1 to {MOST_CHANNELS}")
    if not RATES[0] <= rate <= RATES[1]:
        raise _wrong(name, f"has {rate} samples a second, expected {RATES[0]} to {RATES[1]}")
    return kind, channels, rate, bits


_DTYPES = {
    (_PCM, 8): "u1",
    (_PCM, 16): "<i2",
    (_PCM, 24): "u1",
    (_PCM, 32): "<i4",
    (_FLOAT, 32): "<f4",
    (_FLOAT, 64): "<f8",
}


def _as_float(data: memoryview, kind: int, bits: int) -> Any:
    found = np.frombuffer(data, _DTYPES[kind, bits])
    if kind == _FLOAT:
        return np.nan_to_num(found.astype(np.float32), posinf=1, neginf=-1)
    if bits == 8:
        return (found.astype(np.float32) - 128) / 128
    if bits == 24:  # the upper three bytes of a whole number with 32 bits
        whole = np.zeros((len(found) // 3, 4), np.uint8)
        whole[:, 1:] = found.reshape(-1, 3)
        found, bits = whole.view("<i4").reshape(-1), 32
    return found.astype(np.float32) / np.float32(2 ** (bits - 1))


def _wrong(name: str, problem: str) -> CoreError:
    return invalid(f"the input '{name}' {problem}")
