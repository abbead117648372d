"""Decodes sound for llama.cpp.

llama.cpp tries a program, ffprobe, on what its own decoder cannot read, so it gets nothing but plain WAV
files.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence

import numpy as np
from core_generate.sound import RATE, decode

from core.errors import invalid

MOST_SECONDS = 600  # of a request: 19 MB, which llama.cpp gets in base64
_WINDOW_S = 30  # that encoders compute, also of a shorter sound
_LEAST = RATE // 10  # samples; silence follows a shorter sound, of which a model would see nothing
_BYTES = 2  # of a sample


def plain_files(files: Sequence[bytes]) -> Iterator[bytes]:
    """Yield each sound as a WAV file: one channel of RATE samples a second, with 16 bits each.

    Raises CoreError(INVALID) for a file that is no WAV file, and for more than MOST_SECONDS in all, where
    each sound counts as one window at least.
    """
    seconds = 0.0  # that are computed
    for each in files:
        samples = decode(each, "audio")
        seconds += max(_WINDOW_S, len(samples) / RATE)
        if seconds > MOST_SECONDS:
            raise invalid(
                f"the {len(files)} sounds of the request count as {seconds:.1f} seconds or more, at most "
                f"{MOST_SECONDS} are allowed; each counts as {_WINDOW_S} seconds at least; send shorter or "
                "fewer sounds"
            )
        padded = np.pad(samples, (0, max(0, _LEAST - len(samples))))
        yield _plain((padded * 32767).astype("<i2").tobytes())


def _plain(data: bytes) -> bytes:
    form = struct.pack("<IHHIIHH", 16, 1, 1, RATE, RATE * _BYTES, _BYTES, 8 * _BYTES)
    head = b"WAVEfmt " + form + b"data" + struct.pack("<I", len(data))
    return b"RIFF" + struct.pack("<I", len(head) + len(data)) + head + data
