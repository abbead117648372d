"""Read `model.cbm`: a mark, the size of a FlatBuffer, and the FlatBuffer.

What follows is for categorical and text features, and is not read. Fields are known by their numbers:
CatBoost only adds fields at the end.
"""

from __future__ import annotations

from itertools import islice
from typing import Any

import numpy as np

from backend_fil.catboost.content import (
    Bins,
    Content,
    Damaged,
    Tree,
    refused_features,
    symmetric_tree,
    tree_of_nodes,
)
from backend_fil.catboost.flatbuffer import Table

MARK = b"CBM1"
VERSION = "FlabuffersModel_v1"  # as CatBoost writes it

# Fields of the root.
_VERSION, _TREES, _INFO = 0, 1, 2
# Fields of the trees.
_DIMENSION, _SPLITS, _SIZES, _CATEGORICAL, _FLOATS = 0, 1, 2, 4, 5
_VALUES, _WEIGHTS, _STEPS, _LEAF_OF_NODE, _TEXTS = 8, 9, 10, 11, 12
_SCALE, _BIAS, _BIASES, _EMBEDDINGS = 14, 15, 16, 18
# Fields of a feature.
_COLUMN, _ID = 1, 2
_FLOAT_COLUMN, _BORDERS, _MISSING = 2, 3, 5
_AS_TRUE = 2  # a missing value is above every border
_USED = 3
_MOST_NAMES = 10  # in an error


def read(content: bytes) -> Content:
    """Return the content of a file. Raises Damaged or Refused."""
    size = int.from_bytes(content[4:8], "little")
    if content[:4] != MARK or len(content) < 8 + size:
        raise Damaged(f"it has {len(content)} bytes, {8 + size} are expected")
    root = Table.root(content[8 : 8 + size])
    if (version := root.text(_VERSION)) != VERSION:
        raise Damaged(f"its version is '{version[:40]}', '{VERSION}' is expected")
    trees = root.table(_TREES)
    dimension = trees.whole(_DIMENSION, 0)
    if not 0 < dimension < 1 << 16:
        raise Damaged(f"its trees have {dimension} values for each leaf")
    bins = _bins(trees, size)
    biases = trees.array(_BIASES, "<f8")
    bias = biases if len(biases) else np.full(1, trees.number(_BIAS, "<d", 0))
    return Content(
        bins=bins,
        trees=_Trees(trees, dimension, _splits(trees, bins)).all(),
        dimension=dimension,
        scale=trees.number(_SCALE, "<d", 1),
        bias=bias,
        info=_info(root, size),
    )


def _info(root: Table, size: int) -> dict[str, Any]:
    """Return the texts of a file of `size` bytes by their names. Raises Damaged if they overlap."""
    found: dict[str, Any] = {}
    length = 0
    for each in root.tables(_INFO):
        name, text = each.text(0), each.text(1)
        if (length := length + len(name) + len(text)) > size:
            raise Damaged(f"its texts overlap: they are longer than its {size} bytes")
        found[name] = text
    return found


def _bins(trees: Table, size: int) -> Bins:
    """Return the comparisons of numbers, which come first among all.

    Raises Damaged if their borders overlap: a small file could have any number of them.

    size   of the file, in bytes
    """
    columns, borders, missing_left = [], [], []
    features = count = 0
    for each in trees.tables(_FLOATS):
        column = each.whole(_FLOAT_COLUMN, -1)
        features = max(features, column + 1)
        found = each.array(_BORDERS, "<f4")
        if not len(found):
            continue
        if 4 * (count := count + len(found)) > size:
            raise Damaged(f"its borders overlap: they are longer than its {size} bytes")
        columns.append(np.full(len(found), column, np.int32))
        borders.append(found.astype(np.float64))
        missing_left.append(np.full(len(found), each.number(_MISSING, "<b", 0) != _AS_TRUE))
    for field in (_CATEGORICAL, _TEXTS, _EMBEDDINGS):
        for each in trees.tables(field):
            features = max(features, each.whole(_COLUMN, -1) + 1)
    if not columns:
        return Bins(features, np.empty(0, np.int32), np.empty(0), np.empty(0, bool))
    parts = (columns, borders, missing_left)
    return Bins(features, *(np.concatenate(each) for each in parts))


def _splits(trees: Table, bins: Bins) -> np.ndarray:
    """Return the comparisons of all trees. Raises Refused if one is not of a number."""
    splits = trees.array(_SPLITS, "<i4")
    if len(splits) and splits.min() < 0:
        raise Damaged(f"a comparison has the number {splits.min()}")
    if len(splits) and splits.max() >= len(bins.column):
        kinds = (
            ("categorical feature", _CATEGORICAL, _USED),
            ("text feature", _TEXTS, _USED),
            ("embedding feature", _EMBEDDINGS, _USED + 1),
        )
        used = (
            f"the {kind} '{each.text(_ID) or each.whole(_COLUMN, -1)}'"
            for kind, field, is_used in kinds
            for each in trees.tables(field)
            if each.number(is_used, "<b", 1)
        )
        raise refused_features(list(islice(used, _MOST_NAMES)))
    return splits


class _Trees:
    """Cuts the arrays of all trees into trees."""

    def __init__(self, table: Table, dimension: int, splits: np.ndarray):
        self._table = table
        self._splits = splits
        self._sizes = table.array(_SIZES, "<i4").astype(np.int64)
        values = table.array(_VALUES, "<f8")
        if len(values) % dimension:
            raise Damaged(f"{len(values)} values are not a multiple of {dimension}")
        self._dimension = dimension
        self._values = values.reshape(-1, dimension)
        weights = table.array(_WEIGHTS, "<f8")
        self._weights = weights if len(weights) else None
        if self._weights is not None and len(weights) != len(self._values):
            raise Damaged(f"{len(self._values)} leaves have {len(weights)} weights")
        if self._sizes.min(initial=0) < 0 or self._sizes.sum() != len(splits):
            raise Damaged(f"{len(self._sizes)} trees have {len(splits)} comparisons")

    def all(self) -> list[Tree]:
        steps = self._table.array(_STEPS, "<u4").view("<u2")  # two distances for each node
        return self._asymmetric(steps) if len(steps) else self._symmetric()

    def _symmetric(self) -> list[Tree]:
        found = []
        first_split = first_leaf = 0
        for levels in self._sizes.tolist():
            leaves = slice(first_leaf, first_leaf + (1 << min(levels, 62)))
            found.append(
                symmetric_tree(
                    self._splits[first_split : first_split + levels],
                    self._values[leaves],
                    None if self._weights is None else self._weights[leaves],
                )
            )
            first_split, first_leaf = first_split + levels, leaves.stop
        return found

    def _asymmetric(self, steps: np.ndarray) -> list[Tree]:
        steps = steps.reshape(-1, 2).astype(np.int64)
        leaf_of_node = self._table.array(_LEAF_OF_NODE, "<u4").astype(np.int64)
        if not len(steps) == len(leaf_of_node) == len(self._splits):
            raise Damaged(f"{len(steps)} nodes have {len(self._splits)} comparisons")
        rows = leaf_of_node // self._dimension
        ends = self._sizes.cumsum().tolist()
        parts = [
            slice(end - size, end) for end, size in zip(ends, self._sizes.tolist(), strict=True)
        ]
        found, leaves = [], 0
        for part in parts:
            tree = tree_of_nodes(
                steps[part], self._splits[part], rows[part], self._values, self._weights
            )
            if (leaves := leaves + int((tree.left < 0).sum())) > len(self._values):
                raise Damaged(f"its trees share the {len(self._values)} leaves of the file")
            found.append(tree)
        return found
