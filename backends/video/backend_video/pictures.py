"""Pictures: a decoded frame ─► UINT8[height, width, 3], or NV12 as UINT8[3 · height / 2, width].

FFmpeg converts and scales in one pass, without the GIL. It writes into the memory of the response, unless the
width is no multiple of 16: then the rows are padded, and copied. The two planes of NV12 are always copied,
because FFmpeg leaves a gap between them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from av.video.frame import VideoFrame
from av.video.reformatter import VideoReformatter

NV12 = "NV12"
FORMATS = {"RGB": "rgb24", "BGR": "bgr24", NV12: "nv12"}


class Pictures:
    """Converts frames. Not thread-safe.

    format       a key of FORMATS
    most_width   of a picture; 0 for any. A larger frame is made smaller, and keeps its proportions
    most_height  the same
    threads      that convert one frame
    """

    def __init__(self, format: str, most_width: int, most_height: int, threads: int):
        self._format = FORMATS[format]
        self._planar = format == NV12
        self._most = (most_width, most_height)
        self._threads = threads
        self._reformatter = VideoReformatter()

    def __call__(self, frame: VideoFrame) -> np.ndarray:
        """Return the picture. It is not written to again."""
        width, height = self._size(frame.width, frame.height)
        found = self._reformatter.reformat(
            frame, width, height, self._format, threads=self._threads
        )
        if self._planar:
            return _nv12(found)
        (plane,) = found.planes
        if plane.line_size == 3 * width:
            return _bytes(plane)[: 3 * width * height].reshape(height, width, 3)
        return np.ascontiguousarray(found.to_ndarray())

    def _size(self, width: int, height: int) -> tuple[int, int]:
        most_width, most_height = self._most
        scale = min(
            1.0,
            most_width / width if most_width else 1.0,
            most_height / height if most_height else 1.0,
        )
        if scale < 1.0:
            width, height = max(1, round(width * scale)), max(1, round(height * scale))
        if self._planar:
            width, height = max(2, width & ~1), max(2, height & ~1)
        return width, height


def _nv12(frame: VideoFrame) -> np.ndarray:
    height, width = frame.height, frame.width
    found = np.empty((height * 3 // 2, width), np.uint8)
    begin = 0
    for plane in frame.planes:
        rows = plane.height
        lines = _bytes(plane)[: rows * plane.line_size]
        found[begin : begin + rows] = lines.reshape(rows, plane.line_size)[:, :width]
        begin += rows
    return found


def _bytes(plane: Any) -> np.ndarray:
    """Return the memory of a plane, which the array keeps."""
    return np.frombuffer(plane, np.uint8)
