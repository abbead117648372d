"""A small forest and its expected answers: python -m core_testing fil"""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from core_testing import BackendConformance, Example
from treelite.model_builder import Metadata, ModelBuilder, PostProcessorFunc, TreeAnnotation

from backend_fil import backend

CONFIG = """
    backend: "fil" max_batch_size: 8
    input [{ name: "input__0" data_type: TYPE_FP32 dims: [ -1 ] }]
    parameters { key: "model_type" value { string_value: "treelite_checkpoint" } }
"""
# For each tree: its feature, the threshold, the value below the threshold, and the value from there on.
TREES = ((0, 0.5, -1.0, 1.0), (2, -1.0, 0.25, 4.0))
ROWS = np.array([[0, 0, 0], [0.5, 9, -2], [7, -9, -1], [-3, 0, -1.5]], np.float32)


def save(path: Path) -> None:
    """Write a treelite checkpoint of TREES. The answer is the sum of the trees' values."""
    builder: Any = ModelBuilder(
        threshold_type="float32",
        leaf_output_type="float32",
        metadata=Metadata(
            num_feature=ROWS.shape[1],
            task_type="kRegressor",
            average_tree_output=False,
            num_target=1,
            num_class=[1],
            leaf_vector_shape=(1, 1),
        ),
        tree_annotation=TreeAnnotation(num_tree=2, target_id=[0, 0], class_id=[0, 0]),
        postprocessor=PostProcessorFunc(name="identity"),
        base_scores=[0.0],
    )
    for feature, border, below, above in TREES:
        builder.start_tree()
        builder.start_node(0)
        builder.numerical_test(
            feature_id=feature,
            threshold=border,
            default_left=True,
            opname="<",
            left_child_key=1,
            right_child_key=2,
        )
        builder.end_node()
        for key, value in ((1, below), (2, above)):
            builder.start_node(key)
            builder.leaf(value)
            builder.end_node()
        builder.end_tree()
    builder.commit().serialize(str(path))


def answers(rows: np.ndarray) -> np.ndarray:
    """Return the answers FP32[rows], computed directly from TREES."""
    found = np.zeros(len(rows), np.float32)
    for feature, border, below, above in TREES:
        found += np.where(rows[:, feature] < border, below, above).astype(np.float32)
    return found


class TestFil(BackendConformance):
    supports = {"batching", "cpu"}

    @pytest.fixture
    def example(self, tmp_path: Path) -> Example:
        """The forest of TREES. Rows with another number of features raise."""
        save(tmp_path / "checkpoint.tl")
        return Example(
            backend,
            tmp_path,
            inputs={"input__0": ROWS},
            expected={"output__0": answers(ROWS)},
            config=CONFIG,
            failing={"input__0": ROWS[:, :2]},
        )
