"""Read `catboost.json`, what CatBoost writes with `save_model(…, format="json")`."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from backend_fil.catboost.content import (
    Bins,
    Content,
    Damaged,
    Refused,
    Tree,
    refused_features,
    symmetric_tree,
    tree_of_nodes,
)

_KINDS = {
    "OneHotFeature": "categorical features",
    "OnlineCtr": "categorical features",
    "EstimatedFeature": "text or embedding features",
}


def read(content: bytes) -> Content:
    """Return the content of a file. Raises Damaged or Refused."""
    try:
        return _read(json.loads(content))
    except (Damaged, Refused):
        raise
    except RecursionError:
        raise Damaged("its trees are nested too deeply") from None
    except KeyError as error:
        raise Damaged(f"{error} is missing") from None
    except (ValueError, TypeError, AttributeError, IndexError, OverflowError) as error:
        raise Damaged(str(error)) from None


def _read(found: dict[str, Any]) -> Content:
    bins = _bins(found["features_info"])
    info = dict(found.get("model_info") or {})
    if "oblivious_trees" in found:
        trees = [_symmetric(each, bins) for each in found["oblivious_trees"] or ()]
    else:
        trees = [_Nodes(bins).tree(each) for each in found["trees"] or ()]
    dimension = trees[0].values.shape[1] if trees else 1
    if any(tree.values.shape[1] != dimension for tree in trees):
        raise Damaged("its trees have different numbers of values for a leaf")
    scale, bias = found.get("scale_and_bias") or (1.0, [])
    return Content(
        bins=bins,
        trees=trees,
        dimension=dimension,
        scale=float(scale),
        bias=np.array(bias or [0.0] * dimension, np.float64),
        info=info,
    )


def _bins(info: dict[str, Any]) -> Bins:
    columns: list[int] = []
    borders: list[float] = []
    missing_left: list[bool] = []
    features = 0
    for each in info.get("float_features") or ():
        column = int(each["flat_feature_index"])
        found = each["borders"] or []
        columns += [column] * len(found)
        borders += found
        missing_left += [each["nan_value_treatment"] != "AsTrue"] * len(found)
        features = max(features, column + 1)
    for each in info.get("categorical_features") or ():
        features = max(features, int(each["flat_feature_index"]) + 1)
    return Bins(
        features,
        np.array(columns, np.int32),
        np.array(borders, np.float32).astype(np.float64),
        np.array(missing_left, bool),
    )


def _bin_of(split: dict[str, Any], bins: Bins) -> int:
    """Return the index of a comparison. Raises Refused if it is not of a number."""
    if (kind := split["split_type"]) != "FloatFeature":
        raise refused_features([_KINDS.get(kind, str(kind))])
    found = int(split["split_index"])
    if not 0 <= found < len(bins.border):
        raise Damaged(f"a comparison has the number {found} of {len(bins.border)}")
    return found


def _symmetric(tree: dict[str, Any], bins: Bins) -> Tree:
    asked = [_bin_of(each, bins) for each in tree["splits"] or ()]
    values = np.array(tree["leaf_values"], np.float64)
    leaves = 1 << min(len(asked), 62)
    if not len(values) or len(values) % leaves:
        raise Damaged(f"a tree of {len(asked)} levels has {len(values)} values")
    weights = tree.get("leaf_weights")
    return symmetric_tree(
        np.array(asked, np.int32),
        values.reshape(leaves, -1),
        None if weights is None else np.array(weights, np.float64),
    )


class _Nodes:
    """Flattens one nested tree. Inner nodes have `split`, `left` and `right`, leaves `value` and `weight`."""

    def __init__(self, bins: Bins):
        self._bins = bins
        self._steps: list[list[int]] = []
        self._asked: list[int] = []
        self._rows: list[int] = []
        self._values: list[Any] = []
        self._weights: list[Any] = []

    def tree(self, root: dict[str, Any]) -> Tree:
        waiting: list[tuple[dict[str, Any], int, int]] = [(root, -1, 0)]
        while waiting:
            node, parent, side = waiting.pop()
            place = len(self._steps)
            if parent >= 0:
                self._steps[parent][side] = place - parent
            self._steps.append([0, 0])
            if "value" in node:
                self._asked.append(0)
                self._rows.append(len(self._values))
                self._values.append(node["value"])
                self._weights.append(node.get("weight"))
                continue
            self._asked.append(_bin_of(node["split"], self._bins))
            self._rows.append(-1)
            waiting += [(node["right"], place, 1), (node["left"], place, 0)]
        values = np.array(self._values, np.float64)
        return tree_of_nodes(
            np.array(self._steps),
            np.array(self._asked, np.int32),
            np.array(self._rows),
            values.reshape(len(values), -1),
            None if None in self._weights else np.array(self._weights, np.float64),
        )
