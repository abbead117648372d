"""Read a file of jax.export: the function, and names for its arguments and results.

folder of a version ─► [reading] ─► Exported, Ports.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import jax
from jax import export, tree_util

from backend_jax.settings import Settings
from backend_jax.tensors import Port, Ports
from core.config import ModelConfig
from core.errors import CoreError, internal, invalid, unsupported
from core.model_file import check_readable, not_found

FILENAME = "model.jax"


def model_file(config: ModelConfig, directory: Path) -> Path:
    """Return the file of a version: `default_model_filename`, or model.jax.

    Raises CoreError(UNAVAILABLE) with the files that are there instead.
    """
    path = directory / (config.default_model_filename or FILENAME)
    if path.is_file():
        return path
    raise not_found(path, config.name)


def read(path: Path, model: str) -> Any:
    """Return the jax.export.Exported in a file.

    Raises CoreError: INTERNAL if the file cannot be read, UNSUPPORTED for a function of several devices or
    with effects that have an order.
    """
    check_readable(path, model)
    content = bytearray(path.read_bytes())
    try:
        found = export.deserialize(content)
    except Exception as error:
        raise unreadable(
            path,
            model,
            f"JAX {jax.__version__} cannot read it: {text_of(error)}; write it again with "
            "jax.export.export(…)(…).serialize(), by this version of JAX or one of the six months before it",
        ) from error
    if found.nr_devices != 1:
        raise unsupported(
            f"model '{model}': the function in '{path}' needs {found.nr_devices} devices; export it for one"
        )
    if found.ordered_effects:
        raise unsupported(
            f"model '{model}': the function in '{path}' has effects with an order, such as ordered "
            "callbacks; export it without them"
        )
    return found


def ports_of(exported: Any, settings: Settings, model: str) -> Ports:
    """Return arguments and results. Raises CoreError(INVALID) if the settings name another number of them.

    A dictionary gives its keys as names, a keyword its own. Others are arg0, arg1, … and output0, output1, ….
    """
    args, kwargs = tree_util.tree_unflatten(exported.in_tree, range(len(exported.in_avals)))
    given = dict(enumerate(args)) if len(args) != 1 or not isinstance(args[0], dict) else args[0]
    names = [*_names(given, "arg"), *_names(kwargs, "arg")]
    results = tree_util.tree_unflatten(exported.out_tree, range(len(exported.out_avals)))
    return Ports(
        _ports(_chosen(names, settings.inputs, "inputs", model), exported.in_avals),
        _ports(
            _chosen(_names(results, "output"), settings.outputs, "outputs", model),
            exported.out_avals,
        ),
    )


def unreadable(path: Path, model: str, reason: str) -> CoreError:
    """Return the error for a file."""
    return internal(f"model '{model}': cannot load '{path}': {reason}")


def text_of(error: BaseException) -> str:
    """Return the text of an error of JAX in one line, without its advice about debugging."""
    text = str(error).partition("\n--------")[0]
    return " ".join(text.split())[:1000] or type(error).__name__


def _names(tree: Any, word: str) -> list[str]:
    """Return a name for each leaf of a tree."""
    leaves, _ = tree_util.tree_flatten_with_path(tree)
    return [_name(path, word) for path, _ in leaves]


def _name(path: Sequence[Any], word: str) -> str:
    parts = [
        str(getattr(each, "key", getattr(each, "idx", getattr(each, "name", "")))) for each in path
    ]
    text = ".".join(parts) or "0"
    return f"{word}{text}" if text[0].isdigit() else text


def _chosen(names: list[str], wanted: Sequence[str], parameter: str, model: str) -> Sequence[str]:
    if not wanted:
        return names
    if len(wanted) != len(names):
        raise invalid(
            f"model '{model}': the parameter '{parameter}' has {len(wanted)} names, the function has "
            f"{len(names)}: {', '.join(names)}; name each of them, in this order"
        )
    return wanted


def _ports(names: Iterable[str], avals: Iterable[Any]) -> dict[str, Port]:
    found = {}
    for name, aval in zip(names, avals, strict=True):
        dims = tuple(each if isinstance(each, int) else -1 for each in aval.shape)
        texts = tuple(map(str, aval.shape))
        found[name] = Port(name, str(aval.dtype), dims, texts)
    return found
