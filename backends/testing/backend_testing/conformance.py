"""Conformance tests of identity, repeat and square. Run them with: python -m core_testing identity"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from core_testing import BackendConformance, Example

from backend_testing import identity, repeat, square

X = np.arange(12, dtype=np.float32).reshape(4, 3)


def config(dtype: str, dims: Sequence[int]) -> str:
    """Return the text of a config.pbtxt for identity with one tensor; `dims` without the batch dimension."""
    shape = ", ".join(map(str, dims))
    return (
        'backend: "identity" max_batch_size: 8\n'
        f'input {{ name: "INPUT0" data_type: TYPE_{dtype} dims: [{shape}] }}\n'
        f'output {{ name: "OUTPUT0" data_type: TYPE_{dtype} dims: [{shape}] }}\n'
    )


class TestIdentity(BackendConformance):
    supports = {"batching", "cpu", "dynamic_shape", "native", "strings"}

    @pytest.fixture
    def example(self, tmp_path: Path) -> Example:
        return Example(identity, tmp_path, inputs={"INPUT0": X}, expected={"OUTPUT0": X})

    @pytest.fixture
    def strings_example(self, tmp_path: Path) -> Example:
        text = np.array([[b"", "ä€𝄞".encode()], [b"two words", b"a\0b"]], object)
        return Example(
            identity,
            tmp_path,
            inputs={"INPUT0": text},
            expected={"OUTPUT0": text},
            config=config("STRING", [2]),
        )

    @pytest.fixture
    def other_shapes(self, tmp_path: Path) -> list[Example]:
        arrays = [np.full(shape, 5, np.int32) for shape in ((1, 2, 3), (2, 0, 1), (3, 4, 1))]
        return [
            Example(
                identity,
                tmp_path,
                inputs={"INPUT0": each},
                expected={"OUTPUT0": each},
                config=config("INT32", [-1, -1]),
            )
            for each in arrays
        ]


REPEAT = (
    'backend: "repeat" max_batch_size: 0 model_transaction_policy { decoupled: true }\n'
    'input { name: "IN" data_type: TYPE_INT32 dims: [-1] }\n'
    'input { name: "DELAY" data_type: TYPE_UINT32 dims: [-1] }\n'
    'input { name: "WAIT" data_type: TYPE_UINT32 dims: [1] }\n'
    'output { name: "OUT" data_type: TYPE_INT32 dims: [1] }\n'
    'output { name: "IDX" data_type: TYPE_UINT32 dims: [1] }\n'
)
IN = np.array([7, -1, 7], np.int32)


class TestRepeat(BackendConformance):
    supports = {"cpu", "native", "streaming"}

    @pytest.fixture
    def stream_example(self, tmp_path: Path) -> Example:
        return Example(
            repeat,
            tmp_path,
            inputs={"IN": IN, "DELAY": np.zeros(3, np.uint32), "WAIT": np.zeros(1, np.uint32)},
            expected=[
                {"OUT": IN[i : i + 1], "IDX": np.array([i], np.uint32)} for i in range(len(IN))
            ],
            config=REPEAT,
        )

    @pytest.fixture
    def example(self, tmp_path: Path) -> Example:
        """Return an example with one answer: most tests do not read streams."""
        return Example(
            repeat,
            tmp_path,
            inputs={
                "IN": IN[:1],
                "DELAY": np.zeros(1, np.uint32),
                "WAIT": np.zeros(1, np.uint32),
            },
            expected={"OUT": IN[:1], "IDX": np.zeros(1, np.uint32)},
            config=REPEAT,
        )


SQUARE = (
    'backend: "square" max_batch_size: 0 model_transaction_policy { decoupled: true }\n'
    'input { name: "IN" data_type: TYPE_INT32 dims: [1] }\n'
    'output { name: "OUT" data_type: TYPE_INT32 dims: [1] }\n'
)


class TestSquare(BackendConformance):
    supports = {"cpu", "native", "streaming"}

    @pytest.fixture
    def stream_example(self, tmp_path: Path) -> Example:
        three = np.array([3], np.int32)
        return Example(
            square, tmp_path, inputs={"IN": three}, expected=[{"OUT": three}] * 3, config=SQUARE
        )

    @pytest.fixture
    def example(self, tmp_path: Path) -> Example:
        """Return an example with one answer: most tests do not read streams."""
        one = np.array([1], np.int32)
        return Example(
            square,
            tmp_path,
            inputs={"IN": one},
            expected={"OUT": one},
            config=SQUARE,
            failing={"IN": np.array([-1], np.int32)},
        )
