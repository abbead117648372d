"""Nv12: a picture as videos have it, brightness apart from the colours, ─► UINT8[height, width, 3].

A step that makes such a picture smaller does so before its colours are mixed, for far fewer pixels.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from backend_image.headers import NoPicture
from backend_image.opencv import cv2

Scale = Callable[[np.ndarray, int, int, np.ndarray], np.ndarray]


class Nv12:
    """UINT8[3 · height / 2, width]: the brightness of each pixel, then two colours of each 2 x 2 pixels.

    The values are those of BT.601, with brightness from 16 to 235.

    shape   (height, width, 3), that of the pixels
    """

    ndim = 3

    def __init__(self, values: np.ndarray):
        """Keep the values, contiguous. Raises NoPicture for a shape that no picture has."""
        rows, width = values.shape
        if not values.size or rows % 3 or width % 2:
            raise NoPicture(
                f"a picture of shape {[rows, width]} is not NV12, which has an even width and three rows for "
                "each two of its pixels"
            )
        height = rows // 3 * 2
        self.shape = (height, width, 3)
        self._brightness = values[:height]
        self._colours = values[height:].reshape(height // 2, width // 2, 2)

    def pixels(self, *, red_first: bool = True) -> np.ndarray:
        """Return UINT8[height, width, 3]."""
        return _mixed(self._brightness, self._colours, None, red_first)

    def can_shrink_to(self, height: int, width: int) -> bool:
        """Return whether `shrunk` can make such a size: not larger, and even."""
        have_height, have_width, _ = self.shape
        return height <= have_height and width <= have_width and not (height % 2 or width % 2)

    def shrunk(self, height: int, width: int, scale: Scale, out: np.ndarray | None) -> np.ndarray:
        """Return the pixels of the scaled picture, red first, in `out` if that is given.

        scale   (values, height, width, out) → the scaled values, for values [height, width(, channels)]
        """
        brightness = np.empty((height, width), np.uint8)
        colours = np.empty((height // 2, width // 2, 2), np.uint8)
        return _mixed(
            scale(self._brightness, height, width, brightness),
            scale(self._colours, height // 2, width // 2, colours),
            out,
            red_first=True,
        )


def _mixed(
    brightness: np.ndarray, colours: np.ndarray, out: np.ndarray | None, red_first: bool
) -> np.ndarray:
    code = cv2.COLOR_YUV2RGB_NV12 if red_first else cv2.COLOR_YUV2BGR_NV12
    return np.asarray(cv2.cvtColorTwoPlane(brightness, colours, code, out))
