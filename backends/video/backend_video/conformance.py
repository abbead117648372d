"""A film and the frames that must come of it: python -m core_testing video"""

from pathlib import Path

import numpy as np
import pytest
from core_testing import BackendConformance, Example

from backend_video import backend
from backend_video.films import decoded, film
from backend_video.tensors import DROPPED, FILE, FRAME, GAP, INDEX, NOTICE, PTS

RATE = 25
ONE_FRAME = """
backend: "video" dynamic_batching { }
input { name: "file" }
parameters { key: "frames" value { string_value: "1" } }
"""


class TestVideo(BackendConformance):
    supports = {"cpu", "strings", "streaming"}

    @pytest.fixture
    def example(self, tmp_path: Path) -> Example:
        data = film(2)
        return Example(
            backend,
            tmp_path,
            inputs={FILE: _bytes(data)},
            expected=_answers(data)[0],
            config=ONE_FRAME,
            failing={FILE: _bytes(b"no film")},
        )

    @pytest.fixture
    def strings_example(self, example: Example) -> Example:
        return example

    @pytest.fixture
    def stream_example(self, tmp_path: Path) -> Example:
        data = film(60)
        return Example(
            backend,
            tmp_path,
            inputs={FILE: _bytes(data)},
            expected=_answers(data),
            config='backend: "video"',
        )


def _bytes(data: bytes) -> np.ndarray:
    found = np.empty(1, object)
    found[0] = data
    return found


def _answers(data: bytes) -> list[dict[str, np.ndarray]]:
    none = np.zeros(1, np.int64)
    return [
        {
            FRAME: frame,
            PTS: np.array([number * 1_000_000_000 // RATE]),
            INDEX: np.array([number]),
            GAP: none,
            DROPPED: none,
            NOTICE: _bytes(b""),
        }
        for number, frame in enumerate(decoded(data))
    ]
