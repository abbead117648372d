"""Read the header of a model file without treelite: features, classes and task.

file ─► [header_of] ─► Description.  The trees are not read. Files of CatBoost, and those of XGBoost in
JSON, are parsed up to a size.
"""

from __future__ import annotations

import json
import mmap
import re
import struct
from pathlib import Path
from typing import Any

from backend_fil.catboost import KINDS, Damaged, content_of
from backend_fil.reading import Description

_MOST_JSON_BYTES = 32 << 20
_MOST_CATBOOST_BYTES = 32 << 20
_MOST_HEAD_BYTES = 1 << 20

_BINARY = ("binary:logistic", "binary:logitraw", "binary:hinge", "binary", "cross_entropy")
_CHECKPOINT_TASKS = (0, 2)  # binary and multi-class classifier


class Unreadable(ValueError):
    """The file is no complete model of its kind."""


def header_of(path: Path, kind: str) -> Description | None:
    """Return the description of a model file; None if its header does not say enough without its trees.

    Its link function is "": the sums of leaves need it, names and shapes do not.

    kind   a key of files.FILENAMES
    Raises Unreadable for a file that is cut off or damaged, and catboost.Refused for a model of CatBoost that
    no forest of numbers can represent.
    """
    if kind == "xgboost_json":
        return _of_json(path)
    if kind == "xgboost_ubj":
        return _of_ubjson(path)
    if kind == "lightgbm":
        return _of_text(path)
    if kind == "treelite_checkpoint":
        return _of_checkpoint(path)
    if kind in KINDS:
        return _of_catboost(path, kind)
    return None


def _of_catboost(path: Path, kind: str) -> Description | None:
    if path.stat().st_size > _MOST_CATBOOST_BYTES:
        return None
    try:
        content = content_of(path, kind)
    except Damaged as error:
        raise Unreadable(str(error)) from None
    except MemoryError:
        raise Unreadable("there is not enough memory") from None
    several = content.dimension > 1
    return Description(
        features=content.bins.features,
        classes=content.dimension,
        classifies=content.task[0] != "kRegressor",
        has_vectors=several,
        link="",
        trees=len(content.trees),
    )


def _of_json(path: Path) -> Description | None:
    if path.stat().st_size > _MOST_JSON_BYTES:
        with path.open("rb") as file:
            file.seek(-100, 2)
            if not file.read().rstrip().endswith(b"}"):
                raise Unreadable("its last bytes are missing")
        return None
    try:
        value = json.loads(path.read_bytes())
        learner = value["learner"]
        booster = learner["gradient_booster"]
        return _of_learner(learner, len(booster.get("gbtree", booster)["model"]["trees"]))
    except (ValueError, RecursionError) as error:
        raise Unreadable(str(error) or "nested too deeply") from None
    except (KeyError, TypeError, AttributeError, OverflowError):
        return None


def _of_learner(learner: dict[str, Any], trees: int) -> Description | None:
    parameters, objective = learner["learner_model_param"], str(learner["objective"]["name"])
    if int(parameters.get("num_target", 1)) > 1:
        return None
    return _described(
        int(parameters["num_feature"]), int(parameters["num_class"]), objective, trees
    )


def _described(features: int, classes: int, objective: str, trees: int) -> Description:
    task = objective.split(":")[0]
    several = task in ("multi", "multiclass", "multiclassova") and classes > 1
    return Description(
        features=features,
        classes=classes if several else 1,
        classifies=several or objective in _BINARY,
        has_vectors=False,
        link="",
        trees=trees,
    )


def _of_ubjson(path: Path) -> Description | None:
    """Return the description from the three texts of the header, found by their keys.

    The file has each number as a text, behind its key.
    """
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        if content[-1:] != b"}":
            raise Unreadable("its last bytes are missing")
        found = {key: _ubjson_text(content, key) for key in ("num_feature", "num_class", "name")}
        targets = _ubjson_text(content, "num_target")
    numbers = [found["num_feature"], found["num_class"], targets or "1"]
    if not all(each.isascii() and each.isdigit() for each in numbers) or int(numbers[2]) > 1:
        return None
    if len(numbers[0]) > 9 or len(numbers[1]) > 9 or not found["name"]:
        return None
    return _described(int(numbers[0]), int(numbers[1]), found["name"], 1)


def _ubjson_text(content: mmap.mmap, key: str) -> str:
    start = 0
    if key == "name":  # of the objective, not of the booster
        start = content.find(b"objective")
        start = max(start, 0)
    at = content.find(key.encode() + b"SL", start)
    if at < 0:
        return ""
    at += len(key) + 2
    size = int.from_bytes(content[at : at + 8], "big")
    return content[at + 8 : at + 8 + size].decode("utf-8", "replace") if size < 200 else ""


def _of_text(path: Path) -> Description | None:
    with path.open("rb") as file:
        head = file.read(_MOST_HEAD_BYTES)
        file.seek(max(0, path.stat().st_size - _MOST_HEAD_BYTES))
        tail = file.read(_MOST_HEAD_BYTES)
    if (
        b"\ntree_sizes=" in head
        and path.stat().st_size <= _MOST_HEAD_BYTES
        and b"\nend of trees" not in tail
    ):
        raise Unreadable("the line 'end of trees' is missing")
    values = dict(
        re.findall(rb"^(max_feature_idx|num_class|objective)=([^\r\n]*)", head, re.MULTILINE)
    )
    try:
        features, classes = int(values[b"max_feature_idx"]) + 1, int(values[b"num_class"])
        objective = values[b"objective"].decode("ascii").split(" ")[0]
    except (KeyError, ValueError):
        return None
    return _described(features, classes, objective, head.count(b"\nTree="))


def _of_checkpoint(path: Path) -> Description | None:
    """Return the description of a checkpoint of treelite 4; None for another version."""
    with path.open("rb") as file:
        head = file.read(4096)
    try:
        major = struct.unpack_from("<i", head, 0)[0]
        if major != 4:
            return None
        trees, features, task = struct.unpack_from("<QiB", head, 14)
        targets, counted = struct.unpack_from("<iQ", head, 28)
        if targets != 1 or counted != 1:
            return None
        classes, ranks, first, second = struct.unpack_from("<iQii", head, 40)
        if ranks != 2:
            return None
    except struct.error:
        raise Unreadable("its last bytes are missing") from None
    vectors = (first, second) == (1, classes) and classes > 1
    if not vectors and (first, second) != (1, 1):
        return None
    return Description(features, classes, task in _CHECKPOINT_TASKS, vectors, "", trees)
