"""Tracking of streams, implemented by the C++ headers beside this file."""

import numpy as np

from backend_tracker.settings import Settings

LOST: int

Lost = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]

class Stream:
    """The tracks of one stream. Not thread-safe. len() is the number of its tracks."""

    def __len__(self) -> int: ...

class Streams:
    """Makes streams and tracks their frames. Not thread-safe: the streams share its buffers.

    Raises ValueError for an unknown tracker.
    """

    def __init__(self, settings: Settings) -> None: ...
    def begin(self) -> Stream:
        """Return a new stream without tracks. Its ids begin with 0."""

    def update(
        self, stream: Stream, boxes: np.ndarray, scores: np.ndarray, classes: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, Lost | None]:
        """Track one frame. Return ids INT64[n] and states INT32[n] of the detections, and the lost tracks.

        boxes     FP32[n, 4]: x1, y1, x2, y2, finite, with x1 <= x2 and y1 <= y2
        scores    FP32[n], from 0 to 1
        classes   INT32[n]
        All arrays are contiguous. The lost tracks are (ids INT64[m], boxes FP32[m, 4], scores FP32[m],
        classes INT32[m]), with the predicted boxes and the last scores and classes; None if there are none
        or `report_lost_tracks` is off. Releases the GIL. Raises ValueError if the lengths differ.
        """

def wrong_box(boxes: np.ndarray) -> int:
    """Return the index of the first box FP32[n, 4] that is not finite or has x1 > x2 or y1 > y2; else -1."""

def wrong_score(scores: np.ndarray) -> int:
    """Return the index of the first score FP32[n] that is not from 0 to 1; else -1."""

def assign(similarity: np.ndarray) -> np.ndarray:
    """Return the column INT32[n] of each row, -1 for none, so that the sum of the similarities is largest.

    similarity   FP32[n, m], contiguous, finite
    Among equally good assignments it returns that of scipy.optimize.linear_sum_assignment.
    """
