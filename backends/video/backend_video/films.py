"""Films for tests and examples, made by PyAV: each frame shows its number.

data = film(frames=50)
for frame in decoded(data): number_in(frame)
"""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import av
import numpy as np

_BITS = 8
_FORMATS = {"mp4": "libx264", "matroska": "libx264", "mpegts": "libx264", "mpjpeg": "mjpeg"}


def film(
    frames: int = 50,
    *,
    width: int = 64,
    height: int = 48,
    rate: int = 25,
    container: str = "mp4",
    picture: Callable[[int, int, int], np.ndarray] | None = None,
) -> bytes:
    """Return a film: H.264, or Motion JPEG in "mpjpeg".

    picture   (number, width, height) → UINT8[height, width, 3]; by default `numbered`
    """
    draw = picture or numbered
    codec = _FORMATS[container]
    target = io.BytesIO()
    with av.open(target, "w", format=container) as output:
        stream: Any = output.add_stream(codec, rate=rate)
        stream.width, stream.height = width, height
        stream.pix_fmt = "yuv420p" if codec == "libx264" else "yuvj420p"
        if codec == "libx264":
            stream.options = {"preset": "ultrafast", "tune": "zerolatency", "g": str(rate)}
        for number in range(frames):
            made = av.VideoFrame.from_ndarray(draw(number, width, height), "rgb24")
            output.mux(stream.encode(made))
        output.mux(stream.encode())
    return target.getvalue()


def decoded(data: bytes, format: str = "rgb24") -> list[np.ndarray]:
    """Return the frames of a film, by PyAV's own loop."""
    with av.open(io.BytesIO(data)) as container:
        return [
            np.ascontiguousarray(frame.to_ndarray(format=format))
            for frame in container.decode(video=0)
        ]


def numbered(number: int, width: int, height: int) -> np.ndarray:
    """Return a picture with the lowest eight bits of a number as dark and bright columns."""
    bits = np.array([number >> i & 1 for i in range(_BITS)], np.uint8)
    columns = bits[np.arange(width) * _BITS // width]
    return np.broadcast_to((40 + 170 * columns)[None, :, None], (height, width, 3)).astype(np.uint8)


def number_in(frame: np.ndarray) -> int:
    """Return the number that a frame UINT8[height, width, 3] of `numbered` shows."""
    columns = frame.mean(axis=(0, 2)).reshape(_BITS, -1).mean(axis=1)
    return sum(1 << i for i, bright in enumerate(columns > 125) if bright)
