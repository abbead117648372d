"""Names in nested tuples, lists and dicts: ARGS[0], ARGS[1][key], KWARGS[scale], RESULT[mask][0].

pytree spec of torch ─► [structure] ─► Ports in the order in which torch flattens them.
"""

from __future__ import annotations

from typing import Any

from core.errors import unsupported


def paths(spec: Any, model: str) -> list[tuple[str, ...]]:
    """Return the keys and indices that lead to each leaf of a TreeSpec.

    Raises CoreError(UNSUPPORTED) for a container other than tuple, list and dict.
    """
    if spec.is_leaf():
        return [()]
    if spec.type is dict:
        keys = [str(key) for key in spec.context]
    elif spec.type in (tuple, list):
        keys = [str(i) for i in range(len(children(spec)))]
    elif spec.type is type(None):
        return []
    else:
        raise unsupported(
            f"model '{model}' takes or gives a {spec.type.__name__}; export one with tuples, lists and "
            "dicts of tensors"
        )
    return [
        (key, *rest)
        for key, child in zip(keys, children(spec), strict=True)
        for rest in paths(child, model)
    ]


def input_names(spec: Any, model: str) -> list[str]:
    """Return the names ARGS[i]… and KWARGS[k]… of the leaves of the spec of (args, kwargs)."""
    return [
        ("ARGS" if first == "0" else "KWARGS") + _bracketed(rest)
        for first, *rest in paths(spec, model)
    ]


def output_names(spec: Any, model: str) -> list[str]:
    """Return the name RESULT or RESULT[…]… of each output."""
    return ["RESULT" + _bracketed(path) for path in paths(spec, model)]


def _bracketed(path: Any) -> str:
    return "".join(f"[{each}]" for each in path)


def children(spec: Any) -> Any:
    """Return the children of a TreeSpec: its attribute children_specs, or `children` in newer versions."""
    found = spec.children if hasattr(spec, "children") else spec.children_specs
    return found() if callable(found) else found
