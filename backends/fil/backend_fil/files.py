"""Find the model file and its kind, and read it. Errors say what a person can do about them.

Model ─► [files] ─► reading.  treelite reads the files. If it cannot, XGBoost reads its own files. Those of
CatBoost, which treelite does not know, are read by catboost. Pickles are refused.
"""

from __future__ import annotations

import importlib.util
import logging
import re
from pathlib import Path
from typing import Any

import treelite
from treelite import frontend

from backend_fil import catboost
from backend_fil.categories import shown, without_names
from backend_fil.settings import Settings
from core.config import ModelConfig
from core.errors import CoreError, internal, invalid, unavailable, unsupported

logger = logging.getLogger("core")

# Kind of a file → its name in the folder of a version. If none is configured, the first existing one is used.
FILENAMES = {
    "xgboost": "xgboost.model",
    "xgboost_json": "xgboost.json",
    "xgboost_ubj": "xgboost.ubj",
    "lightgbm": "model.txt",
    "treelite_checkpoint": "checkpoint.tl",
    "catboost": "model.cbm",
    "catboost_json": "catboost.json",
}

_HEAD_BYTES = 64
_LFS_POINTER = b"version https://git-lfs"
_FIRST_KEY = re.compile(rb'\{\s*"(\w+)')  # of a file of JSON
_PLACE_IN_SOURCE = re.compile(r"^\[\d\d:\d\d:\d\d\] \S+: ")
# LightGBM writes two bits per inner node for the values that count as missing. 1 means zero.
_DECISIONS = re.compile(rb"^decision_type=([\d ]+)\r?$", re.MULTILINE)


def model_file(config: ModelConfig, directory: Path, settings: Settings) -> tuple[Path, str]:
    """Return the file of a version and its kind, a key of FILENAMES.

    The kind is the parameter model_type, else what the content shows, else what the file's name says, else
    "xgboost". A file of kind "xgboost" that contains UBJSON is of kind "xgboost_ubj".
    Raises CoreError(INVALID) for an unknown kind, a kind that the file contradicts, or a file that is no
    model; CoreError(UNSUPPORTED) for a pickle; CoreError(UNAVAILABLE) if there is no file.
    """
    kind = settings.model_type
    if kind is not None and kind not in FILENAMES:
        raise invalid(
            f"model '{config.name}': parameter 'model_type' is '{kind}', it must be one of "
            f"{', '.join(FILENAMES)}; change it in config.pbtxt"
        )
    if config.default_model_filename:
        names = [config.default_model_filename]
    else:
        names = [FILENAMES[kind]] if kind else list(FILENAMES.values())
    path = next((directory / name for name in names if (directory / name).is_file()), None)
    if path is None:
        raise _no_file(config.name, directory, names)
    found = _kind_by_content(path, config.name)
    if kind is None:
        by_name = {name: each for each, name in FILENAMES.items()}
        kind = found or by_name.get(path.name) or "xgboost"
    if found not in (None, kind):
        if (kind, found) != ("xgboost", "xgboost_ubj"):  # XGBoost 2.1 writes UBJSON to *.model
            raise invalid(
                f"model '{config.name}': '{path}' is to be of model_type '{kind}', but looks like "
                f"'{found}'; write parameters {{ key: \"model_type\" value {{ string_value: "
                f'"{found}" }} }}, or put the right file there'
            )
        kind = found
    return path, kind


def load(
    path: Path, kind: str, name: str, *, allow_unknown_field: bool, tell: bool = False
) -> treelite.Model:
    """Return the treelite model of a file. Takes long for large files: it copies every node.

    tell   log the numbers of the categories of a file that has their names
    Raises CoreError with the file, the version of the library, the reason and advice.
    """
    if kind in catboost.KINDS:
        return _of_catboost(path, kind, name)
    try:
        model = _load(path, kind, allow_unknown_field)
    except (treelite.TreeliteError, UnicodeDecodeError) as error:
        again = _with_numbers(path, kind, name, allow_unknown_field, tell)
        again = again or _by_xgboost(path, kind, allow_unknown_field)
        if again is None:
            raise _not_read(path, kind, name, str(error)) from error
        model = again
    except MemoryError as error:
        raise _not_read(path, kind, name, "there is not enough memory for it") from error
    if kind == "lightgbm":
        _check_text(path, name)
    if kind == "treelite_checkpoint":
        _refuse_cut_off(path, model, name)
    if model.num_tree == 0:
        raise no_tree(path, name)
    return model


def _of_catboost(path: Path, kind: str, name: str) -> treelite.Model:
    try:
        model = catboost.treelite_of(path, kind)
    except catboost.Refused as error:
        raise refused(path, name, error) from None
    except (catboost.Damaged, treelite.TreeliteError, MemoryError) as error:
        raise unreadable(path, kind, name, str(error) or "there is not enough memory") from None
    if model.num_tree == 0:
        raise no_tree(path, name)
    return model


def refused(path: Path, name: str, reason: catboost.Refused) -> CoreError:
    """Return the error for a model of CatBoost that no forest of numbers can represent."""
    return unsupported(f"model '{name}': '{path}' cannot be served: {reason}")


def no_tree(path: Path, name: str) -> CoreError:
    """Return the error for a model without trees."""
    return invalid(f"model '{name}': '{path}' holds no tree; train it, and save it again")


def unreadable(path: Path, kind: str, name: str, reason: str) -> CoreError:
    """Return the error for a file that is no complete model of its kind."""
    return internal(
        f"model '{name}': cannot read '{path}' as {kind}: its {path.stat().st_size} bytes are no complete "
        f"model of that kind; export or copy the file again ({reason})"
    )


def _load(path: Path, kind: str, allow_unknown_field: bool) -> treelite.Model:
    if kind == "xgboost":
        return frontend.load_xgboost_model_legacy_binary(path)
    if kind == "lightgbm":
        return frontend.load_lightgbm_model(path)
    if kind == "treelite_checkpoint":
        return treelite.Model.deserialize(path)
    form = "json" if kind == "xgboost_json" else "ubjson"
    return frontend.load_xgboost_model(
        path, format_choice=form, allow_unknown_field=allow_unknown_field
    )


def _with_numbers(
    path: Path, kind: str, name: str, allow_unknown_field: bool, tell: bool
) -> treelite.Model | None:
    """Return the model of an XGBoost file with category names, read without these names.

    Returns None for a file of another kind or without names, and if it cannot be read.
    """
    if kind not in ("xgboost_json", "xgboost_ubj"):
        return None
    try:
        if (found := without_names(path.read_bytes(), kind)) is None:
            return None
        content, names = found
        read = (
            frontend.from_xgboost_json if kind == "xgboost_json" else frontend.from_xgboost_ubjson
        )
        model = read(content, allow_unknown_field=allow_unknown_field)
    except (treelite.TreeliteError, ValueError, KeyError, TypeError, RecursionError):
        return None  # the caller reports the error of treelite
    if tell:
        logger.info(
            "model '%s': '%s' was trained on categories with names; requests send their numbers: %s",
            name,
            path,
            shown(names),
        )
    return model


def _by_xgboost(path: Path, kind: str, allow_unknown_field: bool) -> treelite.Model | None:
    """Return the model of a file that XGBoost reads; None if XGBoost is not installed or cannot read it.

    Also returns None if the kind is neither "xgboost" nor "xgboost_json".
    """
    # Not for UBJSON: XGBoost 3.2 hangs on a truncated file.
    if kind not in ("xgboost", "xgboost_json") or importlib.util.find_spec("xgboost") is None:
        return None
    import xgboost

    try:
        booster: Any = xgboost.Booster(model_file=str(path))
        return frontend.from_xgboost_ubjson(
            bytes(booster.save_raw("ubj")), allow_unknown_field=allow_unknown_field
        )
    except (xgboost.core.XGBoostError, treelite.TreeliteError, ValueError):
        return None  # the caller reports the error of treelite


def _kind_by_content(path: Path, name: str) -> str | None:
    """Return the kind that the first bytes show; None if unknown, as for the legacy format of XGBoost.

    Raises CoreError(INVALID) for an empty file or a pointer of Git LFS, and CoreError(UNSUPPORTED) for a
    pickle.
    """
    with path.open("rb") as file:
        head = file.read(_HEAD_BYTES)
    if not head:
        raise invalid(f"model '{name}': '{path}' is empty; export or copy the file again")
    if head.startswith(_LFS_POINTER):
        raise invalid(
            f"model '{name}': '{path}' is only a pointer of Git LFS; fetch the model itself with: "
            "git lfs pull"
        )
    if head[:1] == b"\x80" and head[1:2] in (b"\x02", b"\x03", b"\x04", b"\x05"):
        raise unsupported(
            f"model '{name}': '{path}' is a pickle, which could run any code and is not loaded; "
            "convert the model where it was trained: treelite.sklearn.import_model(model)"
            ".serialize('checkpoint.tl')"
        )
    if head.startswith(catboost.MARK):
        return "catboost"
    if head[:1] == b"{":
        if head[1:2] in (b"L", b"l", b"I", b"i", b"U"):
            return "xgboost_ubj"
        key = _FIRST_KEY.match(head)
        return "catboost_json" if key and key[1] in catboost.KEYS else "xgboost_json"
    if head.startswith((b"tree\n", b"tree\r")):
        return "lightgbm"
    if head[:4] in (b"\x03\0\0\0", b"\x04\0\0\0"):  # its major version
        return "treelite_checkpoint"
    return None


def _check_text(path: Path, name: str) -> None:
    """Refuse LightGBM files that treelite reads without an error, but with wrong answers.

    Raises CoreError for a truncated file, and for a model that was trained with zero_as_missing.
    """
    text = path.read_bytes()
    if b"\ntree_sizes=" in text and b"\nend of trees" not in text:
        raise _not_read(path, "lightgbm", name, "the line 'end of trees' is missing")
    for line in _DECISIONS.finditer(text):  # numerical nodes for which zero counts as missing
        if any((int(each) >> 2) & 3 == 1 and not int(each) & 1 for each in set(line[1].split())):
            raise unsupported(
                f"model '{name}': '{path}' was trained with zero_as_missing=true, which treelite "
                f"{treelite.__version__} does not keep; train it with NaN in the place of zero"
            )


def _refuse_cut_off(path: Path, model: treelite.Model, name: str) -> None:
    """Raise CoreError for a truncated checkpoint, for whose missing bytes treelite would read zeros.

    Checkpoints of other versions of treelite are not checked, because their length may differ.
    """
    with path.open("rb") as file:
        version = tuple(int.from_bytes(file.read(4), "little") for _ in range(3))
    if ".".join(map(str, version)) != treelite.__version__:
        return  # another version may write another length
    size, whole = path.stat().st_size, len(model.serialize_bytes())
    if size < whole:
        raise _not_read(path, "treelite_checkpoint", name, f"{whole - size} bytes are missing")


def _no_file(name: str, directory: Path, names: list[str]) -> CoreError:
    there = sorted(each.name for each in directory.iterdir()) if directory.is_dir() else []
    wanted = " or ".join(f"'{each}'" for each in names)
    return unavailable(
        f"unable to find {wanted} in '{directory}' for model '{name}' (the folder has "
        f"{', '.join(there) or 'nothing'}); put the model there, name its kind in parameter "
        "'model_type', or its file in default_model_filename in config.pbtxt"
    )


def _not_read(path: Path, kind: str, name: str, reason: str) -> CoreError:
    reason = (
        _PLACE_IN_SOURCE.sub("", reason.strip().splitlines()[0]) if reason.strip() else "unknown"
    )
    return internal(
        f"model '{name}': treelite {treelite.__version__} cannot read '{path}' as {kind}: "
        f"{_advice(path, kind, reason)} ({reason})"
    )


def _advice(path: Path, kind: str, reason: str) -> str:
    """Return what a person can do about a file that treelite cannot read.

    reason   treelite's text, without its place in treelite's source
    """
    if "unknown field" in reason.lower() or "not recognized" in reason.lower():
        return "set parameter 'xgboost_allow_unknown_field' to true, or install a newer treelite"
    if "categorical encoder" in reason:
        return (
            "it keeps the names of categories in a form that is not known here; train it on their numbers "
            "(pandas: frame[column].cat.codes, with feature_types 'c')"
        )
    if "linear_tree" in reason:
        return "train it with linear_tree=false"
    if "Multi-target" in reason:
        return "save it as JSON or UBJSON"
    if kind.startswith("xgboost") and b"gblinear" in path.read_bytes():
        return (
            "it is a linear model (booster gblinear) and has no trees; train it with gbtree or dart, or "
            "serve it by XGBoost in a Python model"
        )
    if "objective" in reason.lower():
        return "train it with an objective of the library, or install a newer treelite"
    if "different major Treelite version" in reason:
        return "write the checkpoint again with treelite 3.9 or 4"
    size = path.stat().st_size
    return f"its {size} bytes are no complete model of that kind; export or copy the file again"
