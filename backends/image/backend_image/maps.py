"""Keypoints and Masks: maps over the input of a model ─► points and masks in the original picture."""

from __future__ import annotations

import numpy as np

from backend_image.opencv import cv2
from backend_image.options import Options
from backend_image.shape import GEOMETRY, Geometry
from backend_image.stage import Outputs, RequestStage, Tensor
from core import dtypes
from core.request import InferenceRequest

HEATMAPS, KEYPOINTS, MASKS = "heatmaps", "keypoints", "masks"
_MOST_POINTS = 100_000
_LARGEST_SIDE = 65_536  # of a picture with masks, in pixels


class Keypoints(RequestStage):
    """The highest place of each heatmap, moved by a quarter towards its higher neighbour.

    With `sigmoid`, the score is the sigmoid of the heatmap's value.
    """

    def __init__(self, options: Options):
        self._size = options.size("input_size")
        self._input = options.text("input", HEATMAPS)
        self._points_last = options.choice("layout", "NCHW", ("NCHW", "NHWC")) == "NHWC"
        self._sigmoid = options.flag("sigmoid", False)
        self._most = options.count("points", _MOST_POINTS, 1, _MOST_POINTS)
        self.inputs = (
            Tensor(self._input, dtypes.FP32, (-1, -1, -1)),
            Tensor(GEOMETRY, dtypes.FP32, (6,), optional=True),
        )
        self.outputs = (Tensor(KEYPOINTS, dtypes.FP32, (-1, 3)),)

    def answer(self, request: InferenceRequest) -> Outputs:
        maps = self.rows(request, self._input)
        if self._points_last:
            maps = maps.transpose(0, 3, 1, 2)
        maps = maps[:, : self._most]
        if 0 in maps.shape[1:]:
            raise self.refused(f"'{self._input}' of shape {list(maps.shape)} is empty")
        geometries = self.rows(request, GEOMETRY) if GEOMETRY in request.inputs else None
        return self.joined(
            [
                {KEYPOINTS: self._points(each, None if geometries is None else geometries[i])}
                for i, each in enumerate(maps)
            ]
        )

    def _points(self, maps: np.ndarray, geometry: np.ndarray | None) -> np.ndarray:
        """Return x, y and score FP32[n, 3] of heatmaps FP32[n, height, width]."""
        count, height, width = maps.shape
        place = maps.reshape(count, -1).argmax(axis=1)
        y, x = np.divmod(place, width)
        all_ = np.arange(count)
        score = maps[all_, y, x]
        points = np.stack([x, y], axis=1).astype(np.float64)
        inside = (x > 0) & (x < width - 1) & (y > 0) & (y < height - 1)
        i, x, y = all_[inside], x[inside], y[inside]
        points[inside, 0] += 0.25 * np.sign(maps[i, y, x + 1] - maps[i, y, x - 1])
        points[inside, 1] += 0.25 * np.sign(maps[i, y + 1, x] - maps[i, y - 1, x])
        points *= [self._size[1] / width, self._size[0] / height]
        if geometry is not None:
            points = Geometry.of(geometry).original(points)
        if self._sigmoid:
            with np.errstate(over="ignore"):  # the sigmoid of a very low value is 0
                score = 1 / (1 + np.exp(-score.astype(np.float64)))
        return np.concatenate([points, score[:, None]], axis=1).astype(np.float32)


class Masks(RequestStage):
    """Masks over the input of a model, scaled to the original picture: 1 where they reach the threshold."""

    def __init__(self, options: Options):
        self._size = options.size("input_size")
        self._input = options.text("input", MASKS)
        self._threshold = options.number("threshold", 0.5, -1e6, 1e6)
        self._most_pixels = options.number("max_megapixels", 50, 0.0001, 1000) * 1e6
        self.inputs = (
            Tensor(self._input, dtypes.FP32, (-1, -1, -1)),
            Tensor(GEOMETRY, dtypes.FP32, (6,)),
        )
        self.outputs = (Tensor(MASKS, dtypes.UINT8, (-1, -1, -1)),)

    def answer(self, request: InferenceRequest) -> Outputs:
        masks, geometries = self.rows(request, self._input), self.rows(request, GEOMETRY)
        if 0 in masks.shape[2:]:
            raise self.refused(f"'{self._input}' of shape {list(masks.shape)} is empty")
        if not (geometries == geometries[0])[:, :2].all():
            raise self.refused(
                "the pictures of one request have different sizes; send them one by one"
            )
        return self.joined(
            [{MASKS: self._scaled(*each)} for each in zip(masks, geometries, strict=True)]
        )

    def _scaled(self, masks: np.ndarray, geometry: np.ndarray) -> np.ndarray:
        """Return UINT8[n, height, width] of masks FP32[n, h, w]."""
        place = Geometry.of(geometry)
        if max(place.width, place.height) > _LARGEST_SIDE:
            raise self.refused(
                f"the picture has {place.width:g} x {place.height:g} pixels; masks are made for sides of up "
                f"to {_LARGEST_SIDE}"
            )
        width, height = int(place.width), int(place.height)
        pixels = len(masks) * width * height
        if pixels > self._most_pixels:
            raise self.refused(
                f"{len(masks)} masks of {width} x {height} pixels are {pixels} pixels, more than the "
                f"{self._most_pixels:.0f} of max_megapixels"
            )
        x, y = masks.shape[2] / self._size[1], masks.shape[1] / self._size[0]
        # Centres of pixels map to centres: (u + 0.5) in the picture is at ((u + 0.5) · scale + left) · x.
        back = np.array(
            [
                [place.scale_x * x, 0, (0.5 * place.scale_x + place.left) * x - 0.5],
                [0, place.scale_y * y, (0.5 * place.scale_y + place.top) * y - 0.5],
            ]
        )
        found = np.empty((len(masks), height, width), np.uint8)
        for mask, out in zip(masks, found, strict=True):
            scaled = cv2.warpAffine(
                np.ascontiguousarray(mask),
                back,
                (width, height),
                flags=cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP,
                borderMode=cv2.BORDER_REPLICATE,
            )
            out[...] = np.asarray(scaled) >= self._threshold
        return found
