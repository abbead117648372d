import numpy as np

from backend_image.shape import Geometry

class Detector:
    """Finds the detections in the output of a detector. Thread-safe: nothing is kept between calls.

    score_threshold   the least score of a detection
    iou_threshold     boxes that overlap a better one by more than this are duplicates
    by_class          boxes of different classes are no duplicates
    centred           a box is its centre and its size, not two corners
    size              (height, width) that boxes are parts of; None for boxes in pixels
    max_candidates    the best ones that are compared, at least 1
    max_detections    the best ones that are returned, at least 1
    """

    def __init__(
        self,
        *,
        score_threshold: float,
        iou_threshold: float,
        by_class: bool,
        centred: bool,
        size: tuple[int, int] | None,
        max_candidates: int,
        max_detections: int,
    ) -> None: ...
    def find(
        self,
        boxes: np.ndarray,
        scores: np.ndarray,
        objects: np.ndarray | None,
        geometry: Geometry | None,
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return boxes FP32[m, 4] as x1, y1, x2, y2, scores FP32[m] and classes INT32[m], the best first.

        boxes      FP32[n, 4], not necessarily contiguous nor aligned
        scores     FP32[n, classes], likewise
        objects    FP32[n] that scores are multiplied by, or None
        geometry   where the original picture is: boxes are returned in its pixels, and clipped to it

        Scores that are equal keep their order. A box with a NaN among its scores is no detection. Boxes that
        are not finite or have no area are dropped after `max_candidates` is applied. Duplicates are those of
        cv2.dnn.NMSBoxes, with its rounding.

        Releases the GIL from 4096 scores on. Compares each candidate with each detection, some 6 ns a pair:
        at most 15 ms for 3000 candidates and 300 detections, 6 s for 100,000 and 10,000. Raises ValueError
        if the lengths differ or there is no class.
        """
