"""Content: what both forms of a CatBoost file say, and what each loss function means for answers.

binary, text ─► [content] ─► building.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

DEEPEST = 16  # level of a tree whose levels compare one feature each; the limit of CatBoost

_BINARY = ("Logloss", "CrossEntropy", "Focal")
_SEVERAL = {"MultiClass": "softmax", "MultiClassOneVsAll": "multiclass_ova"}
_EXPONENTIAL = ("Poisson", "Tweedie")


_MOST_FEATURES = 1 << 24


class Damaged(ValueError):
    """The file is no complete model of CatBoost."""


class Refused(ValueError):
    """The model has something that a forest of numbers does not have. The text says what, and what to do."""


@dataclass(frozen=True)
class Bins:
    """The comparisons of a model, each `feature > border`. All arrays have one value for each.

    features        number of values in an input row
    column          INT32, index of the feature in a row
    border          FP64
    missing_left    whether a missing value counts as not above the border
    """

    features: int
    column: np.ndarray
    border: np.ndarray
    missing_left: np.ndarray

    def __post_init__(self) -> None:
        if self.features > _MOST_FEATURES or self.column.min(initial=0) < 0:
            raise Damaged(f"it has features outside of a row of {self.features}")


@dataclass(frozen=True)
class Tree:
    """One tree. All arrays have a value for each node; node 0 is the root.

    left, right   INT32, the child if the comparison is false, and if it is true; -1 for leaves
    bins          INT32, index into Bins; any for leaves
    values        FP64[nodes, dimension]; any for inner nodes
    weights       FP64, weight of the rows of the training; None if the file does not say it
    """

    left: np.ndarray
    right: np.ndarray
    bins: np.ndarray
    values: np.ndarray
    weights: np.ndarray | None


@dataclass(frozen=True)
class Content:
    """A model: `scale` times the sum of the leaves, plus `bias` FP64[dimension] or FP64[1]."""

    bins: Bins
    trees: list[Tree]
    dimension: int
    scale: float
    bias: np.ndarray
    info: Mapping[str, Any]

    def __post_init__(self) -> None:
        fits = self.bias.shape in ((1,), (self.dimension,))
        if not fits or not np.isfinite(self.bias).all():
            raise Damaged(f"its bias {self.bias.tolist()} does not fit {self.dimension} values")
        if not np.isfinite(self.scale):
            raise Damaged(f"its scale is {self.scale}, a finite number is expected")
        if self.threshold is not None and not np.isfinite(self.threshold):
            raise Damaged(
                f"its probability threshold is {self.threshold}, a finite number is expected"
            )

    @property
    def loss(self) -> str:
        """Name of the loss function; "" if the file does not have it."""
        found = _object(self.info.get("params")).get("loss_function")
        found = _object(found or self.info.get("loss_function"))
        return str(found.get("type", ""))

    @property
    def task(self) -> tuple[str, str]:
        """Names of treelite for the task and the link function.

        Raises Refused for several values that are no classes.
        """
        loss = self.loss
        if self.dimension > 1:
            if loss not in _SEVERAL:
                raise Refused(
                    f"its loss function '{loss}' has {self.dimension} values for each row, which are no "
                    "classes; train a model for each value, or serve it by catboost in a Python model"
                )
            return "kMultiClf", _SEVERAL[loss]
        if loss in _BINARY or "class_params" in self.info:
            return "kBinaryClf", "sigmoid"
        return "kRegressor", "exponential" if loss in _EXPONENTIAL else "identity"

    @property
    def threshold(self) -> float | None:
        """Probability above which class 1 is predicted, if it was set with set_probability_threshold."""
        found = self.info.get("binclass_probability_threshold")
        try:
            return None if found is None else float(found)
        except (TypeError, ValueError):
            raise Damaged(f"binclass_probability_threshold is {found!r}, not a number") from None


def symmetric_tree(bins: np.ndarray, values: np.ndarray, weights: np.ndarray | None) -> Tree:
    """Return a tree whose levels compare one feature each.

    bins      comparison of each level. The first one is the lowest bit of the number of a leaf
    values    FP64[2 ** levels, dimension]
    weights   FP64[2 ** levels], or None
    Raises Damaged if the number of leaves is another one, and for weights of another shape.
    """
    levels = len(bins)
    leaves = len(values)
    if levels > DEEPEST or leaves != 1 << levels:
        raise Damaged(f"a tree of {levels} levels has {leaves} leaves")
    inner = leaves - 1
    children = np.full((2, inner + leaves), -1, np.int32)
    children[0, :inner] = 2 * np.arange(inner) + 1
    children[1, :inner] = children[0, :inner] + 1
    asked = np.zeros(inner + leaves, np.int32)
    for level, each in enumerate(reversed(bins.tolist())):
        asked[(1 << level) - 1 : (2 << level) - 1] = each
    every = None
    if weights is not None:
        _check_weights(weights, leaves)
        sums = [weights]
        for _ in range(levels):
            sums.append(sums[-1].reshape(-1, 2).sum(axis=1))
        every = np.concatenate(sums[::-1])
    filled = np.concatenate([np.zeros((inner, values.shape[1])), values])
    return Tree(children[0], children[1], asked, filled, every)


def tree_of_nodes(
    steps: np.ndarray, bins: np.ndarray, rows: np.ndarray, values: np.ndarray, weights: Any
) -> Tree:
    """Return a tree of any form.

    steps     INT64[nodes, 2], distance to the child on either side. 0: there is a leaf, that of this node
    bins      comparison of each node
    rows      INT64[nodes], index of the node's leaf, if it has one
    values    FP64[leaves, dimension] of all trees
    weights   FP64[leaves] of all trees, or None
    Raises Damaged for a child or leaf that does not exist, and for weights of another shape.
    """
    nodes = np.arange(len(steps))
    inner = (steps[:, 0] != 0) | (steps[:, 1] != 0)
    ends = (steps == 0) & inner[:, None]
    added = nodes.repeat(ends.sum(axis=1))  # the nodes with a leaf of their own on one side
    children = nodes[:, None] + steps
    children[ends] = len(steps) + np.arange(len(added))
    children[~inner] = -1
    if len(steps) == 0 or (children[~ends] >= len(steps)).any():
        raise Damaged(f"a tree of {len(steps)} nodes has children outside of it")
    of_leaf = np.concatenate([np.where(inner, -1, rows), rows[added]])
    is_leaf = np.concatenate([~inner, np.ones(len(added), bool)])
    if is_leaf.sum() > len(values):
        raise Damaged(f"a tree has {is_leaf.sum()} leaves, the file has {len(values)}")
    if (of_leaf[is_leaf] < 0).any() or (of_leaf[is_leaf] >= len(values)).any():
        raise Damaged(f"a tree has leaves that are not among the {len(values)} of the file")
    none = np.full((len(added), 2), -1)
    left, right = np.concatenate([children, none]).astype(np.int32).T
    every = None
    if weights is not None:
        _check_weights(weights, len(values))
        every = _with_sums(np.where(is_leaf, weights[of_leaf], 0.0), left, right)
    asked = np.concatenate([bins, np.zeros(len(added), bins.dtype)]).astype(np.int32)
    return Tree(left, right, asked, values[of_leaf], every)


def _check_weights(weights: np.ndarray, leaves: int) -> None:
    if weights.shape != (leaves,):
        raise Damaged(f"{leaves} leaves have weights of the shape {list(weights.shape)}")


def _with_sums(weights: np.ndarray, left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return the weights of all nodes from those of leaves. Children come after their parents."""
    found: list[float] = weights.tolist()
    children = list(zip(left.tolist(), right.tolist(), strict=True))
    for node in range(len(found) - 1, -1, -1):
        one, other = children[node]
        if one >= 0:
            found[node] = found[one] + found[other]
    return np.array(found)


def refused_features(used: list[str]) -> Refused:
    """Return the error for comparisons of other things than numbers."""
    return Refused(
        f"it uses {', '.join(used) or 'features that are no numbers'}, and requests have numbers only; "
        "train it on numbers (a column of 0 and 1 for each category), or serve it by catboost in a Python "
        "model"
    )


def _object(value: Any) -> dict[str, Any]:
    """Return an object that may be written as a text of JSON; an empty one for anything else."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return {}
    return value if isinstance(value, dict) else {}
