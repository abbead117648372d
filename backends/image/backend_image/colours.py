"""The order of colours: pixels of requests begin with red, pictures of OpenCV with blue."""

from __future__ import annotations

import numpy as np

from backend_image.opencv import cv2


def turned(pixels: np.ndarray) -> np.ndarray:
    """Return pixels [height, width, channels], at least one, contiguous and with the last channel first."""
    if pixels.shape[-1] == 3 and pixels.dtype == np.uint8:
        return np.asarray(cv2.cvtColor(pixels, cv2.COLOR_RGB2BGR))  # fifty times faster than numpy
    return np.ascontiguousarray(pixels[..., ::-1])
