"""Frames with known tracks: python -m core_testing tracker"""

from pathlib import Path

import numpy as np
import pytest
from core_testing import BackendConformance, Example

from backend_tracker import backend
from backend_tracker.tensors import BOXES, CLASSES, IDS, SCORES, STATES

# Without sequences, each row is a stream of one frame; BoT-SORT gives ids in the first frame.
ROWS = np.array(
    [
        [[0, 0, 10, 10], [50, 50, 70, 90]],
        [[5, 5, 10, 20], [1, 2, 3, 4]],
        [[0, 0, 1, 1], [0, 0, 1, 1]],
    ],
    np.float32,
)
TRUST = np.array([[0.9, 0.65], [0.05, 0.8], [1, 1]], np.float32)
LABELS = np.array([[1, 2], [3, 4], [5, 6]], np.int32)

STATEFUL = """
backend: "tracker" max_batch_size: 8
sequence_batching { oldest { max_candidate_sequences: 8 } }
"""


class TestTracker(BackendConformance):
    supports = {"batching", "cpu", "dynamic_shape", "state"}
    more_config = 'parameters { key: "tracker" value { string_value: "botsort" } }'

    @pytest.fixture
    def example(self, tmp_path: Path) -> Example:
        return _example(tmp_path, ROWS, TRUST, LABELS, [[0, -1], [-1, 0], [0, 1]])

    @pytest.fixture
    def other_shapes(self, tmp_path: Path) -> list[Example]:
        none = np.empty((2, 0), np.float32)
        return [
            _example(tmp_path, ROWS, TRUST, LABELS, [[0, -1], [-1, 0], [0, 1]]),
            _example(tmp_path, ROWS[:, :1], TRUST[:, :1], LABELS[:, :1], [[0], [-1], [0]]),
            _example(tmp_path, none[..., None].repeat(4, 2), none, none.astype(np.int32), none),
        ]

    @pytest.fixture
    def state_example(self, tmp_path: Path) -> Example:
        """A box in three frames at the same place, and one whose score begins no track."""
        inputs = {
            BOXES: np.array([[[0, 0, 10, 10], [50, 50, 70, 90]]], np.float32),
            SCORES: np.array([[0.9, 0.5]], np.float32),
            CLASSES: np.array([[7, 8]], np.int32),
        }
        ids, states = np.array([[0, -1]], np.int64), np.array([[2, 0]], np.int32)
        one: dict[str, np.ndarray] = {IDS: ids, **inputs, STATES: states}
        return Example(backend, tmp_path, inputs=inputs, expected=[one] * 3, config=STATEFUL)


def _example(
    folder: Path, boxes: np.ndarray, scores: np.ndarray, classes: np.ndarray, ids: object
) -> Example:
    found = np.array(ids, np.int64)
    return Example(
        backend,
        folder,
        inputs={BOXES: boxes, SCORES: scores, CLASSES: classes},
        expected={
            IDS: found,
            BOXES: boxes,
            SCORES: scores,
            CLASSES: classes,
            STATES: np.where(found < 0, 0, 2).astype(np.int32),
        },
        config='backend: "tracker" max_batch_size: 8 dynamic_batching { }',
        failing={BOXES: boxes[..., ::-1] + np.float32(1), SCORES: scores, CLASSES: classes},
        described=False,  # its row would be a frame of a sequence
    )
