"""Steps that change the size of a picture, and what they did to it.

picture ─► [resize, letterbox, crop] ─► picture and Geometry, with which boxes find their way back.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from PIL import Image

from backend_image.headers import NoPicture
from backend_image.nv12 import Nv12
from backend_image.opencv import cv2
from backend_image.options import LARGEST_SIDE, Options

GEOMETRY = "geometry"  # the tensor

Picture = np.ndarray | Nv12

_OPENCV = {
    "nearest": cv2.INTER_NEAREST,
    "bilinear": cv2.INTER_LINEAR,
    "bicubic": cv2.INTER_CUBIC,
    "area": cv2.INTER_AREA,
    "lanczos": cv2.INTER_LANCZOS4,
}
_PIL = {
    "nearest": Image.Resampling.NEAREST,
    "bilinear": Image.Resampling.BILINEAR,
    "bicubic": Image.Resampling.BICUBIC,
    "area": Image.Resampling.BOX,
    "lanczos": Image.Resampling.LANCZOS,
}


@dataclass
class Geometry:
    """Where a pixel of the original picture is now: x → scale_x · x + left, y → scale_y · y + top.

    width, height   of the original picture, upright
    """

    width: float
    height: float
    scale_x: float = 1.0
    scale_y: float = 1.0
    left: float = 0.0
    top: float = 0.0

    @classmethod
    def of(cls, array: np.ndarray) -> Geometry:
        """Return the geometry that `array` has returned. Raises NoPicture for numbers of no picture."""
        values = array.astype(np.float64).tolist()
        found = cls(*values)
        empty = min(found.width, found.height) < 1 or min(found.scale_x, found.scale_y) <= 0
        if empty or not all(map(math.isfinite, values)):
            raise NoPicture(f"'{GEOMETRY}' is {values}, which no picture has")
        return found

    def array(self) -> np.ndarray:
        """Return FP32[6]: width, height, scale_x, scale_y, left, top."""
        return np.array(
            [self.width, self.height, self.scale_x, self.scale_y, self.left, self.top], np.float32
        )

    def original(self, points: np.ndarray) -> np.ndarray:
        """Return where points [n, 2] are in the original picture."""
        found: np.ndarray = points - (self.left, self.top)
        found /= (self.scale_x, self.scale_y)
        return found

    def scale(self, x: float, y: float) -> None:
        self.scale_x, self.left = self.scale_x * x, self.left * x
        self.scale_y, self.top = self.scale_y * y, self.top * y


class Step(ABC):
    """One step. Thread-safe.

    size   (height, width) of what comes out; None if it depends on the picture
    """

    size: tuple[int, int] | None = None

    @abstractmethod
    def __call__(self, picture: Picture, geometry: Geometry) -> Picture:
        """Return the changed picture, and change `geometry`. May return a view of the picture."""


class Scaler:
    """The options `method` and `like` of a step: scales a picture to a size, exactly like OpenCV or PIL."""

    def __init__(self, options: Options):
        method = options.choice("method", "bilinear", tuple(_OPENCV))
        like = options.choice("like", "opencv", ("opencv", "pil"))
        self._opencv = _OPENCV[method]
        self._pil = _PIL[method] if like == "pil" else None
        # At an odd whole factor, the middle of a new pixel is that of an old one, which is all of it.
        self._takes_middles = self._pil is None and method in ("bilinear", "bicubic", "lanczos")

    def __call__(
        self, picture: Picture, height: int, width: int, out: np.ndarray | None = None
    ) -> np.ndarray:
        """Return the scaled picture, perhaps as a view. Writes it to `out` if that is given."""
        if isinstance(picture, Nv12):
            if self._pil is None and picture.can_shrink_to(height, width):
                return _written(picture.shrunk(height, width, self._scaled, out), out)
            picture = picture.pixels()
        return self._scaled(picture, height, width, out)

    def _scaled(
        self, picture: np.ndarray, height: int, width: int, out: np.ndarray | None
    ) -> np.ndarray:
        down, across = picture.shape[0] / height, picture.shape[1] / width
        if self._takes_middles and down % 2 == across % 2 == 1:
            found = _middles(picture, int(down), int(across), out)
        elif self._pil is None:
            size = (width, height)
            found = np.asarray(cv2.resize(picture, size, dst=out, interpolation=self._opencv))
        else:
            image = Image.fromarray(np.ascontiguousarray(picture))
            found = np.asarray(image.resize((width, height), self._pil))
        return _written(found, out)


def _written(found: np.ndarray, out: np.ndarray | None) -> np.ndarray:
    """Return what was found, in `out` if that is given."""
    if out is None or found is out:
        return found
    out[...] = found
    return out


def _middles(picture: np.ndarray, down: int, across: int, out: np.ndarray | None) -> np.ndarray:
    """Return the pixel in the middle of each `down` x `across` pixels."""
    if out is None:
        return picture[down // 2 :: down, across // 2 :: across]
    # NumPy copies such a view pixel by pixel. OpenCV takes the first one of each group, if the factor that
    # it computes is not rounded down.
    first = picture[down // 2 :, across // 2 :]
    fx, fy = (1 - 1e-9) / across, (1 - 1e-9) / down
    return np.asarray(cv2.resize(first, None, out, fx, fy, interpolation=cv2.INTER_NEAREST))


class Resize(Step):
    """To a size, or so that the shorter or the longer side gets a length."""

    def __init__(self, options: Options):
        names = [name for name in ("size", "shorter", "longer") if name in options]
        if len(names) != 1:
            raise options.wrong(
                names[0] if names else "size", "the only one of size, shorter, longer"
            )
        self._side = 0
        self._shorter = "shorter" in options
        if "size" in options:
            self.size = options.size("size")
        else:
            self._side = options.count(names[0], 0, 1, LARGEST_SIDE)
        self._scaler = Scaler(options)

    def __call__(self, picture: Picture, geometry: Geometry) -> Picture:
        height, width = picture.shape[:2]
        to_height, to_width = self.size or self._proportional(height, width)
        if (to_height, to_width) == (height, width):
            return picture
        geometry.scale(to_width / width, to_height / height)
        return self._scaler(picture, to_height, to_width)

    def _proportional(self, height: int, width: int) -> tuple[int, int]:
        """Return the size with the same proportions; the other side is rounded down, like torchvision's."""
        side = min(height, width) if self._shorter else max(height, width)
        found = [
            self._side if each == side else max(1, self._side * each // side)
            for each in (height, width)
        ]
        return min(found[0], LARGEST_SIDE), min(found[1], LARGEST_SIDE)


class Letterbox(Step):
    """To the largest size that fits, in the middle of a canvas."""

    size: tuple[int, int]

    def __init__(self, options: Options, channels: int, red_first: bool = False):
        self.size = options.size("size")
        fill = options.floats("fill", 114, channels)  # red first
        self._fill = np.array(fill if red_first else fill[::-1]).clip(0, 255).astype(np.uint8)
        self._one_fill = len(set(self._fill.tolist())) == 1
        self._enlarge = options.flag("enlarge", True)
        self._scaler = Scaler(options)

    def __call__(self, picture: Picture, geometry: Geometry) -> Picture:
        height, width = picture.shape[:2]
        scale = min(self.size[0] / height, self.size[1] / width)
        if not self._enlarge:
            scale = min(scale, 1.0)
        to_height, to_width = max(1, round(height * scale)), max(1, round(width * scale))
        top, left = (self.size[0] - to_height) // 2, (self.size[1] - to_width) // 2
        geometry.scale(to_width / width, to_height / height)
        geometry.left += left
        geometry.top += top
        if (to_height, to_width) == self.size:  # the picture covers the canvas
            return self._scaler(picture, to_height, to_width)
        canvas = np.empty((*self.size, *picture.shape[2:]), np.uint8)
        if picture.ndim == 2 or self._one_fill:
            canvas.fill(self._fill[0])
        else:
            canvas[...] = self._fill
        self._scaler(
            picture, to_height, to_width, canvas[top : top + to_height, left : left + to_width]
        )
        return canvas


class Crop(Step):
    """The middle. Where the picture is smaller than that, it gets black borders."""

    size: tuple[int, int]

    def __init__(self, options: Options):
        self.size = options.size("size")

    def __call__(self, picture: Picture, geometry: Geometry) -> Picture:
        if isinstance(picture, Nv12):
            picture = picture.pixels()
        top, left = (
            max(0, round((have - want) / 2))
            for want, have in zip(self.size, picture.shape[:2], strict=True)
        )
        picture = picture[top : top + self.size[0], left : left + self.size[1]]
        geometry.left -= left
        geometry.top -= top
        missing = [want - have for want, have in zip(self.size, picture.shape[:2], strict=True)]
        if any(missing):  # only now: a border of a long picture would take memory
            top, left = missing[0] // 2, missing[1] // 2
            picture = np.asarray(
                cv2.copyMakeBorder(
                    picture, top, missing[0] - top, left, missing[1] - left, cv2.BORDER_CONSTANT
                )
            )
            geometry.left += left
            geometry.top += top
        return picture


def steps(channels: int, red_first: bool) -> dict[str, Callable[[Options], Step]]:
    """Return the steps by their names in image.json, for pictures of 3 channels or of 1.

    red_first   order of the colours of the pictures
    """
    return {
        "resize": Resize,
        "letterbox": lambda given: Letterbox(given, channels, red_first),
        "crop": Crop,
    }
