"""Decodes sound for llama.cpp.

llama.cpp tries a program, ffprobe, on what its own decoder cannot read, so it gets nothing but plain WAV
files.
"""

from __future__ import annotations

import io
import wave
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from core_generate.engine import never
from core_generate.sound import RATE, decode, padded

from core.errors import invalid

MOST_SECONDS = 600  # of a request: 19 MB, which llama.cpp gets in base64
_WINDOW_S = 30  # that encoders compute, also of a shorter sound
_BYTES = 2  # of a sample


def plain_files(files: Sequence[bytes], stopped: Callable[[], bool] = never) -> Iterator[bytes]:
    """Yield each sound as a WAV file: one channel of RATE samples a second, with 16 bits each.

    Raises CoreError(INVALID) for a file that cannot be read, and for more than MOST_SECONDS in all, where
    each sound counts as one window at least. Raises CoreError(CANCELLED) once `stopped` returns True.
    """
    seconds = 0.0  # that are computed
    for each in files:
        samples = decode(each, "audio", stopped, MOST_SECONDS)
        seconds += max(_WINDOW_S, len(samples) / RATE)
        if seconds > MOST_SECONDS:
            raise invalid(
                f"the {len(files)} sounds of the request count as {seconds:.1f} seconds or more, at most "
                f"{MOST_SECONDS} are allowed; each counts as {_WINDOW_S} seconds at least; send shorter or "
                "fewer sounds"
            )
        yield _plain(padded(samples))


def _plain(samples: Any) -> bytes:
    file = io.BytesIO()
    with wave.open(file, "wb") as written:
        written.setnchannels(1)
        written.setsampwidth(_BYTES)
        written.setframerate(RATE)
        written.writeframes((samples * 32767).astype("<i2").tobytes())
    return file.getvalue()
