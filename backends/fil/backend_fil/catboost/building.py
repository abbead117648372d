"""Make a treelite model of Content.

text, binary ─► [building] ─► reading.  Arrays are set for whole trees: there is no Python loop over nodes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import treelite
from treelite.model_builder import Metadata, ModelBuilder, PostProcessorFunc, TreeAnnotation

from backend_fil.catboost.content import Bins, Content, Tree

_LESS_OR_EQUAL = 3  # of treelite: a row goes left if feature <= border
THRESHOLD = "catboost_threshold"  # attribute of a model with a threshold of its own


def treelite_model(content: Content) -> treelite.Model:
    """Return the model. Raises Refused for what a forest of numbers does not have."""
    task, link = content.task
    count, dimension = len(content.trees), content.dimension
    several = dimension > 1
    made: Any = ModelBuilder(
        threshold_type="float64",
        leaf_output_type="float64",
        metadata=Metadata(
            num_feature=content.bins.features,
            task_type=task,
            average_tree_output=False,
            num_target=1,
            num_class=[dimension],
            leaf_vector_shape=(1, dimension),
        ),
        tree_annotation=TreeAnnotation(
            num_tree=count, target_id=[0] * count, class_id=[-1 if several else 0] * count
        ),
        postprocessor=PostProcessorFunc(name=link),
        base_scores=np.broadcast_to(content.bias, dimension).astype(float).tolist(),
        attributes={} if content.threshold is None else {THRESHOLD: repr(content.threshold)},
    )
    for _ in range(count):  # a leaf, whose arrays are then replaced
        made.start_tree()
        made.start_node(0)
        made.leaf([0.0] * dimension if several else 0.0)
        made.end_node()
        made.end_tree()
    model: treelite.Model = made.commit()
    for number, tree in enumerate(content.trees):
        accessor = model.get_tree_accessor(number)
        for field, array in _fields(tree, content.bins, content.scale).items():
            accessor.set_field(field, np.ascontiguousarray(array))
    return model


def _fields(tree: Tree, bins: Bins, scale: float) -> dict[str, np.ndarray]:
    """Return the arrays of treelite for a tree."""
    nodes = len(tree.left)
    inner = tree.left >= 0
    asked = np.where(inner, tree.bins, 0)
    values = np.where(inner[:, None], 0.0, tree.values * scale)
    found: dict[str, np.ndarray] = {
        "num_nodes": np.array([nodes], np.int32),
        "node_type": inner.astype(np.int8),
        "cleft": tree.left,
        "cright": tree.right,
        "split_index": _at(bins.column, asked, inner, -1).astype(np.int32),
        "default_left": _at(bins.missing_left, asked, inner, 0).astype(np.uint8),
        "threshold": _at(bins.border, asked, inner, 0).astype(np.float64),
        "cmp": np.where(inner, _LESS_OR_EQUAL, 0).astype(np.int8),
        "category_list_right_child": np.zeros(nodes, np.uint8),
        "category_list_begin": np.zeros(nodes, np.uint64),
        "category_list_end": np.zeros(nodes, np.uint64),
        "leaf_value": np.zeros(nodes),
    }
    if values.shape[1] == 1:
        found["leaf_value"] = values[:, 0]
        begin = end = np.zeros(nodes, np.uint64)
    else:
        width = values.shape[1]
        end = ((~inner).cumsum() * width).astype(np.uint64)
        begin = np.where(inner, end, end - np.uint64(width))
        found["leaf_vector"] = values[~inner].reshape(-1)
    found["leaf_vector_begin"], found["leaf_vector_end"] = begin, end
    if tree.weights is not None:
        found["sum_hess"] = tree.weights
        found["sum_hess_present"] = np.ones(nodes, np.uint8)
    return found


def _at(array: np.ndarray, asked: np.ndarray, inner: np.ndarray, other: Any) -> np.ndarray:
    """Return the value of each node's comparison, `other` for leaves."""
    if not len(array):
        return np.full(len(asked), other)
    found: np.ndarray = np.where(inner, array[asked], other)
    return found
