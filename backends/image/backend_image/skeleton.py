"""DrawKeypoints: a file and the keypoints of what it shows ─► a file with points and lines between them."""

from __future__ import annotations

import itertools

import numpy as np

from backend_image.decode import Decode
from backend_image.draw import IMAGE, PICTURE, Encoder, as_tensor, colour_of
from backend_image.maps import KEYPOINTS
from backend_image.opencv import cv2
from backend_image.options import Options
from backend_image.stage import Outputs, RequestStage, Tensor
from core import dtypes
from core.request import InferenceRequest

_MOST_POINTS = 10_000
_FARTHEST = 100_000.0  # from the picture, in pixels; OpenCV computes lines with integers


class DrawKeypoints(RequestStage):
    """Draws the keypoints whose score reaches a threshold, and the lines whose both ends are drawn.

    A line has the colour of its number, so that left and right differ.
    """

    def __init__(self, options: Options, encoder: Encoder):
        self._threshold = options.number("score_threshold", 0.3, -1e6, 1e6)
        self._radius = options.count("radius", 3, 1, 50)
        self._thickness = options.count("thickness", 2, 1, 50)
        self._lines = options.pairs("lines", _MOST_POINTS)
        self._needed = max(itertools.chain(*self._lines), default=-1) + 1  # points, for the lines
        self._decode = Decode(options)
        if self._decode.grey:
            raise options.wrong("colour", "colour: keypoints are drawn in colours")
        self._encoder = encoder
        self.inputs = (
            Tensor(IMAGE, dtypes.BYTES, (1,)),
            Tensor(KEYPOINTS, dtypes.FP32, (-1, 3)),
        )
        self.outputs = (Tensor(PICTURE, dtypes.BYTES, (1,)),)

    def answer(self, request: InferenceRequest) -> Outputs:
        points = self.rows(request, KEYPOINTS)
        count = points.shape[1]
        if count < self._needed:
            raise self.refused(
                f"'{KEYPOINTS}' has {count} points, and lines of image.json name point {self._needed - 1}"
            )
        if count > _MOST_POINTS:
            raise self.refused(
                f"'{KEYPOINTS}' has {count} points, at most {_MOST_POINTS} are drawn"
            )
        found = []
        for image, each in zip(self.rows(request, IMAGE), points, strict=True):
            picture = np.ascontiguousarray(self._decode(image.reshape(-1)[0]))
            self._draw(picture, each)
            found.append({PICTURE: as_tensor(self._encoder(picture))})
        return self.joined(found)

    def _draw(self, picture: np.ndarray, points: np.ndarray) -> None:
        shown = np.isfinite(points).all(axis=1) & (points[:, 2] >= self._threshold)
        places = [
            (round(x), round(y))
            for x, y in np.nan_to_num(points[:, :2]).clip(-_FARTHEST, _FARTHEST).tolist()
        ]
        for number, (one, other) in enumerate(self._lines):
            if shown[one] and shown[other]:
                cv2.line(
                    picture,
                    places[one],
                    places[other],
                    colour_of(number),
                    self._thickness,
                    cv2.LINE_AA,
                )
        for each in np.flatnonzero(shown).tolist():
            cv2.circle(picture, places[each], self._radius, (255, 255, 255), -1, cv2.LINE_AA)
