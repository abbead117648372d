"""Decode: the bytes of a file ─► UINT8[height, width, 3], blue first, or UINT8[height, width]."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import simplejpeg

from backend_image.headers import Header, NoPicture, read_header
from backend_image.opencv import cv2
from backend_image.options import Options

Picture = np.ndarray

_MILLION = 1_000_000

# What turns a picture of each EXIF orientation upright.
_TURNS: dict[int, Callable[[Picture], Any]] = {
    2: lambda picture: cv2.flip(picture, 1),
    3: lambda picture: cv2.rotate(picture, cv2.ROTATE_180),
    4: lambda picture: cv2.flip(picture, 0),
    5: lambda picture: cv2.transpose(picture),
    6: lambda picture: cv2.rotate(picture, cv2.ROTATE_90_CLOCKWISE),
    7: lambda picture: cv2.flip(cv2.transpose(picture), -1),
    8: lambda picture: cv2.rotate(picture, cv2.ROTATE_90_COUNTERCLOCKWISE),
}


class Decode:
    """Decodes files. Thread-safe.

    grey   whether pictures have one channel
    """

    def __init__(self, options: Options):
        self.grey = options.choice("colour", "colour", ("colour", "grey")) == "grey"
        self._upright = options.flag("orientation", True)
        self._most_pixels = int(options.number("max_megapixels", 50, 0.0001, 1000) * _MILLION)
        self._most_bytes = int(options.number("max_megabytes", 32, 0.0001, 1000) * _MILLION)

    def __call__(self, data: bytes) -> Picture:
        """Return the picture. Raises NoPicture before it allocates memory for one that is too large."""
        if len(data) > self._most_bytes:
            raise NoPicture(
                f"it has {len(data)} bytes, more than the {self._most_bytes} of max_megabytes"
            )
        header = read_header(data)
        if header.width * header.height > self._most_pixels:
            raise NoPicture(
                f"it has {header.width} x {header.height} pixels, more than the {self._most_pixels} of "
                "max_megapixels"
            )
        picture = self._pixels(data, header)
        if picture.shape[:2] != (header.height, header.width):
            raise NoPicture(
                f"its header says {header.width} x {header.height} pixels, it has "
                f"{picture.shape[1]} x {picture.shape[0]}"
            )
        if self._upright and header.orientation in _TURNS:
            picture = np.asarray(_TURNS[header.orientation](picture))
        return picture

    def _pixels(self, data: bytes, header: Header) -> Picture:
        if header.format == "JPEG":
            found = self._jpeg(data)
            if found is not None:
                return found
        how = cv2.IMREAD_GRAYSCALE if self.grey else cv2.IMREAD_COLOR
        try:
            picture = cv2.imdecode(
                np.frombuffer(data, np.uint8), how | cv2.IMREAD_IGNORE_ORIENTATION
            )
        except cv2.error as error:
            raise NoPicture(
                f"it is a {header.format} file that OpenCV refuses: {error.err}"
            ) from None
        if picture is None:
            raise NoPicture(f"it is a damaged {header.format} file")
        return np.asarray(picture)

    def _jpeg(self, data: bytes) -> Picture | None:
        """Return the picture; None for a rare colour space, which OpenCV knows."""
        try:
            _, _, space, _ = simplejpeg.decode_jpeg_header(data)
            if space not in ("YCbCr", "Gray", "RGB"):
                return None
            if not self.grey:
                return np.asarray(simplejpeg.decode_jpeg(data, "BGR", strict=False))
            return np.asarray(simplejpeg.decode_jpeg(data, "GRAY", strict=False)[..., 0])
        except ValueError as error:
            raise NoPicture(f"it is a damaged JPEG file: {error}") from None
