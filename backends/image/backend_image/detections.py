"""Detections: the raw output of a detector ─► boxes in the original picture, without duplicates."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from backend_image.labels import labels_of, read_labels
from backend_image.opencv import cv2
from backend_image.options import Options
from backend_image.shape import GEOMETRY, Geometry
from backend_image.stage import Outputs, RequestStage, Tensor
from core import dtypes
from core.request import InferenceRequest

BOXES, SCORES, CLASSES, LABELS, COUNT = "boxes", "scores", "classes", "labels", "count"
PREDICTIONS = "predictions"


class Detections(RequestStage):
    """Chooses the best class of each box, drops weak boxes and duplicates, and maps the rest back.

    A request of several rows gets as many boxes for each as its row with most has; `count` is the number of
    real ones, the others are zeros with the class -1.
    """

    is_short = True

    def __init__(self, options: Options, folder: Path):
        self._format = options.choice("format", "boxes", ("boxes", "yolov5", "yolov8"))
        self._centred = options.choice("box", "corners", ("corners", "centre")) == "centre"
        self._size = options.size_or_none("relative_to")
        self._least = options.number("score_threshold", 0.25, 0, 1)
        self._overlap = options.number("iou_threshold", 0.45, 0, 1)
        self._by_class = options.flag("class_aware", True)
        self._most = options.count("max_detections", 300, 1, 10_000)
        self._candidates = options.count("max_candidates", 3000, 1, 100_000)
        self._labels = read_labels(folder, options)
        self.inputs = (
            *(
                (Tensor(BOXES, dtypes.FP32, (-1, 4)), Tensor(SCORES, dtypes.FP32, (-1, -1)))
                if self._format == "boxes"
                else (Tensor(PREDICTIONS, dtypes.FP32, (-1, -1)),)
            ),
            Tensor(GEOMETRY, dtypes.FP32, (6,), optional=True),
        )
        outputs = [
            Tensor(BOXES, dtypes.FP32, (-1, 4)),
            Tensor(SCORES, dtypes.FP32, (-1,)),
            Tensor(CLASSES, dtypes.INT32, (-1,)),
            Tensor(COUNT, dtypes.INT32, (1,)),
        ]
        if self._labels is not None:
            outputs.append(Tensor(LABELS, dtypes.BYTES, (-1,)))
        self.outputs = outputs

    def answer(self, request: InferenceRequest) -> Outputs:
        geometries = self.rows(request, GEOMETRY) if GEOMETRY in request.inputs else None
        if self._format == "boxes":
            raw = list(zip(self.rows(request, BOXES), self.rows(request, SCORES), strict=True))
        else:
            raw = [self._split(row) for row in self.rows(request, PREDICTIONS)]
        found = [
            self._detections(boxes, scores, None if geometries is None else geometries[i])
            for i, (boxes, scores) in enumerate(raw)
        ]
        return self.joined(_padded(found, self._labels is not None))

    def _split(self, row: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return boxes [n, 4] and scores [n, classes] of one row of YOLO's output."""
        if self._format == "yolov8":
            row = row.T
        first = 4 if self._format == "yolov8" else 5
        if row.shape[1] <= first:
            raise self.refused(
                f"'{PREDICTIONS}' has {row.shape[1]} values for each box; {self._format} has {first}, and "
                "one for each class"
            )
        scores = row[:, first:]
        return row[:, :4], scores if first == 4 else scores * row[:, 4:5]

    def _detections(
        self, boxes: np.ndarray, scores: np.ndarray, geometry: np.ndarray | None
    ) -> Outputs:
        if len(boxes) != len(scores):
            raise self.refused(
                f"'{BOXES}' has {len(boxes)} boxes and '{SCORES}' has scores of {len(scores)}; they must "
                "be equal"
            )
        if not scores.shape[1]:
            raise self.refused(f"'{SCORES}' of shape {list(scores.shape)} has no class")
        value = scores.max(axis=1)
        chosen = (value >= self._least).nonzero()[0]  # a NaN is no detection
        order = (-value[chosen]).argsort(kind="stable")[: self._candidates]
        chosen = chosen[order]
        corners = self._corners(boxes[chosen])
        if not np.isfinite(corners).all():
            finite = np.isfinite(corners).all(axis=1)
            chosen, corners = chosen[finite], corners[finite]
        sizes = corners[:, 2:] - corners[:, :2]
        if not (sizes > 0).all():
            filled = (sizes > 0).all(axis=1)
            chosen, corners, sizes = chosen[filled], corners[filled], sizes[filled]
        best = scores[chosen].argmax(axis=1)
        kept = self._without_duplicates(corners, sizes, best)
        corners = corners[kept]
        if geometry is not None:
            corners = _in_the_picture(corners, Geometry.of(geometry))
        classes = best[kept].astype(np.int32)
        found = {
            BOXES: corners.astype(np.float32),
            SCORES: value[chosen[kept]].astype(np.float32),
            CLASSES: classes,
            COUNT: np.array([len(classes)], np.int32),
        }
        if self._labels is not None:
            found[LABELS] = labels_of(classes, self._labels)
        return found

    def _corners(self, boxes: np.ndarray) -> np.ndarray:
        """Return boxes as x1, y1, x2, y2 in pixels of the model's input."""
        boxes = boxes.astype(np.float64)
        if self._centred or self._format != "boxes":
            half = boxes[:, 2:] / 2
            np.add(boxes[:, :2], half, out=boxes[:, 2:])
            boxes[:, :2] -= half
        if self._size is not None:
            height, width = self._size
            boxes = boxes * np.array([width, height, width, height], np.float64)
        return boxes

    def _without_duplicates(
        self, corners: np.ndarray, sizes: np.ndarray, classes: np.ndarray
    ) -> np.ndarray:
        """Return the indices of the boxes to keep. The boxes are in order, the best first."""
        if not len(corners):
            return np.empty(0, np.int64)
        places = corners[:, :2]
        if self._by_class:
            # Boxes of different classes must not touch: each class gets a place of its own.
            places = places + ((corners.max() - corners.min() + 1) * classes)[:, None]
        boxes = np.concatenate([places, sizes], axis=1)
        # Ranks in place of scores keep this order, also of equal scores.
        ranks = [float(rank) for rank in range(len(boxes), 0, -1)]
        kept = cv2.dnn.NMSBoxes(boxes.tolist(), ranks, 0.0, self._overlap)
        return np.asarray(kept, np.int64).reshape(-1)[: self._most]


def _in_the_picture(corners: np.ndarray, geometry: Geometry) -> np.ndarray:
    """Return boxes [n, 4] in the original picture, and clip them to it."""
    moved = geometry.original(corners.reshape(-1, 2))
    np.maximum(moved, 0, out=moved)
    np.minimum(moved, (geometry.width, geometry.height), out=moved)
    return moved.reshape(-1, 4)


def _padded(rows: list[Outputs], labelled: bool) -> list[Outputs]:
    """Fill rows with fewer boxes than another one of their request."""
    if len(rows) == 1:
        return rows
    most = max(len(row[SCORES]) for row in rows)
    found = []
    for row in rows:
        missing = most - len(row[SCORES])
        if missing:
            filled = {
                BOXES: np.pad(row[BOXES], ((0, missing), (0, 0))),
                SCORES: np.pad(row[SCORES], (0, missing)),
                CLASSES: np.pad(row[CLASSES], (0, missing), constant_values=-1),
                COUNT: row[COUNT],
            }
            if labelled:
                filled[LABELS] = np.concatenate([row[LABELS], np.full(missing, b"", object)])
            row = filled
        found.append(row)
    return found
