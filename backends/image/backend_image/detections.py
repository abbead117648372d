"""Detections: the raw output of a detector ─► boxes in the original picture, without duplicates."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from backend_image.labels import labels_of, read_labels
from backend_image.native.detector import Detector
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

    def __init__(self, options: Options, folder: Path):
        self._format = options.choice("format", "boxes", ("boxes", "yolov5", "yolov8"))
        centred = options.choice("box", "corners", ("corners", "centre")) == "centre"
        most = options.count("max_detections", 300, 1, 10_000)
        candidates = options.count("max_candidates", 3000, 1, 100_000)
        # Each candidate is compared with each detection before it: with many of both that takes seconds.
        self.is_short = most * candidates <= 1_000_000
        self._detector = Detector(
            centred=centred or self._format != "boxes",
            size=options.size_or_none("relative_to"),
            score_threshold=options.number("score_threshold", 0.25, 0, 1),
            iou_threshold=options.number("iou_threshold", 0.45, 0, 1),
            by_class=options.flag("class_aware", True),
            max_detections=most,
            max_candidates=candidates,
        )
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
        raw: list[tuple[np.ndarray, np.ndarray, np.ndarray | None]]
        if self._format == "boxes":
            both = zip(self.rows(request, BOXES), self.rows(request, SCORES), strict=True)
            raw = [(boxes, scores, None) for boxes, scores in both]
        else:
            raw = [self._split(row) for row in self.rows(request, PREDICTIONS)]
        found = [
            self._detections(boxes, scores, None if geometries is None else geometries[i], objects)
            for i, (boxes, scores, objects) in enumerate(raw)
        ]
        return self.joined(_padded(found, self._labels is not None))

    def _split(self, row: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """Return boxes [n, 4], scores [n, classes] and objects [n] or None of YOLO's output, as views."""
        if self._format == "yolov8":
            row = row.T
        first = 4 if self._format == "yolov8" else 5
        if row.shape[1] <= first:
            raise self.refused(
                f"'{PREDICTIONS}' has {row.shape[1]} values for each box; {self._format} has {first}, and "
                "one for each class"
            )
        return row[:, :4], row[:, first:], None if first == 4 else row[:, 4]

    def _detections(
        self,
        boxes: np.ndarray,
        scores: np.ndarray,
        geometry: np.ndarray | None,
        objects: np.ndarray | None = None,
    ) -> Outputs:
        if len(boxes) != len(scores):
            raise self.refused(
                f"'{BOXES}' has {len(boxes)} boxes and '{SCORES}' has scores of {len(scores)}; they must "
                "be equal"
            )
        if not scores.shape[1]:
            raise self.refused(f"'{SCORES}' of shape {list(scores.shape)} has no class")
        original = None if geometry is None else Geometry.of(geometry)
        places, values, classes = self._detector.find(boxes, scores, objects, original)
        found = {
            BOXES: places,
            SCORES: values,
            CLASSES: classes,
            COUNT: np.array([len(classes)], np.int32),
        }
        if self._labels is not None:
            found[LABELS] = labels_of(classes, self._labels)
        return found


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
