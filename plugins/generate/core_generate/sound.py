"""Decodes files of sound to what models of speech read: one channel of 16,000 samples a second.

file ─► wave_file or compressed_sound ─► blocks FP32[samples], the mean of the channels ─► resampled
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from core.errors import cancelled, invalid
from core_generate import compressed_sound, wave_file
from core_generate.engine import never

RATE = 16_000  # samples a second
MOST_SECONDS = 3600
MOST_CHANNELS = 8
RATES = (4_000, 192_000)  # of files
_SHORTEST = RATE // 10  # samples; encoders make no token of fewer
_BLOCK_S = 30  # of sound that is resampled at once
_EDGE_S = (
    1  # on each side of a block; its samples are dropped, because blocks are taken for periodic
)


def decode(
    data: bytes, name: str, stopped: Callable[[], bool] = never, most_s: float | None = None
) -> Any:
    """Return the sound of a file as FP32[samples] at RATE, from -1 to 1.

    name      of the input, for errors
    stopped   whether the request is cancelled; asked at each 30 seconds of sound that are resampled, at each
              packet of a compressed file, and at the end
    most_s    seconds of sound that are accepted, MOST_SECONDS at most
    Raises CoreError(INVALID) for another file, a damaged one, and beyond the bounds of seconds, channels and
    rate, where a file that hides its seconds is decoded up to the bound; and CoreError(CANCELLED).
    """
    try:
        found = _samples(data, stopped, min(MOST_SECONDS, most_s or MOST_SECONDS))
    except ValueError as error:
        raise invalid(f"the input '{name}' {error}") from None
    np.clip(found, -1, 1, out=found)
    _check_wanted(stopped)
    return found


def padded(samples: Any) -> Any:
    """Return FP32[samples] at RATE; silence follows a sound that is too short for an encoder."""
    return np.pad(samples, (0, max(0, _SHORTEST - len(samples))))


def _samples(data: bytes, stopped: Callable[[], bool], most_s: float) -> Any:
    """Return FP32[samples] at RATE. Raises ValueError, whose text follows the name of the input."""
    sound: wave_file.WaveFile | compressed_sound.CompressedSound
    if wave_file.is_wave(data):
        sound = wave_file.read(data)
    elif compressed_sound.demuxer(data):
        sound = compressed_sound.CompressedSound(data)
    else:
        raise ValueError("is no WAV, MP3, MP4, FLAC, Ogg, WebM or AAC file")
    with sound:
        _check_bounds(sound, most_s)
        blocks = sound.blocks(_BLOCK_S * sound.rate, lambda: _check_wanted(stopped))
        return _joined(_up_to(most_s, blocks, sound.rate), sound.rate)


def _check_bounds(
    sound: wave_file.WaveFile | compressed_sound.CompressedSound, most_s: float
) -> None:
    if not 1 <= sound.channels <= MOST_CHANNELS:
        raise ValueError(f"has {sound.channels} channels, expected 1 to {MOST_CHANNELS}")
    if not RATES[0] <= sound.rate <= RATES[1]:
        raise ValueError(f"has {sound.rate} samples a second, expected {RATES[0]} to {RATES[1]}")
    if sound.frames > sound.rate * most_s:
        raise _too_long(f"{sound.frames / sound.rate:.0f}", most_s)


def _up_to(most_s: float, blocks: Iterable[Any], rate: int) -> Iterator[Any]:
    """Yield blocks, as long as they have at most so many seconds together. Raises ValueError beyond."""
    left = most_s * rate
    for block in blocks:
        left -= len(block)
        if left < 0:
            raise _too_long(f"more than {most_s:g}", most_s)
        yield block


def _too_long(seconds: str, most_s: float) -> ValueError:
    return ValueError(f"has {seconds} seconds of sound, at most {most_s:g} are accepted")


def _joined(blocks: Iterator[Any], rate: int) -> Any:
    """Return all blocks as FP32[samples] at RATE. Each but the last has _BLOCK_S seconds at `rate`."""
    made = [*(blocks if rate == RATE else _resampled(blocks, rate))]
    return np.concatenate(made) if made else np.zeros(0, np.float32)


def _resampled(blocks: Iterator[Any], rate: int) -> Iterator[Any]:
    """Yield each block at RATE, without the frequencies that RATE lacks.

    Its neighbours lie on both sides of it while it is computed.
    """
    size, edge = _BLOCK_S * rate, _EDGE_S * rate
    length = (_BLOCK_S + 2 * _EDGE_S) * RATE
    before, block = np.zeros(edge, np.float32), next(blocks, None)
    while block is not None:
        following = next(blocks, None)
        after = () if following is None else following[:edge]
        extended = np.zeros(size + 2 * edge, np.float32)
        extended[:edge] = before
        extended[edge : edge + len(block)] = block
        extended[edge + size : edge + size + len(after)] = after
        wave = np.fft.irfft(np.fft.rfft(extended)[: length // 2 + 1], length) * (RATE / rate)
        kept = wave[_EDGE_S * RATE : -_EDGE_S * RATE].astype(np.float32)
        yield kept[: -(-len(block) * RATE // rate)]
        before, block = block[-edge:], following


def _check_wanted(stopped: Callable[[], bool]) -> None:
    if stopped():
        raise cancelled()
