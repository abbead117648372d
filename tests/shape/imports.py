"""Which module imports which, at its top level and for type checkers: a reader follows both."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from tests.shape.sources import files, tree


def graph(folder: str) -> dict[str, set[str]]:
    """Module → modules of the same folder that it imports at its top level or below TYPE_CHECKING."""
    modules = {
        _name(path.with_suffix("").parts): path for path in files(folder) if path.suffix == ".py"
    }
    return {
        name: {
            found
            for each in _imported(tree(path), name)
            if (found := _known(each, modules)) and found != name
        }
        for name, path in modules.items()
    }


def components(edges: Mapping[str, set[str]]) -> list[list[str]]:
    """Groups of modules that import each other in a circle, the largest first."""
    reached = {name: _reached(name, edges) for name in edges}
    found = {
        tuple(sorted(each for each in reached[name] if name in reached[each])) for name in edges
    }
    return sorted((list(each) for each in found if len(each) > 1), key=len, reverse=True)


def _reached(start: str, edges: Mapping[str, set[str]]) -> set[str]:
    seen: set[str] = set()
    rest = [start]
    while rest:
        for each in edges[rest.pop()] - seen:
            seen.add(each)
            rest.append(each)
    return seen


def _name(parts: tuple[str, ...]) -> str:
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _known(name: str, modules: Mapping[str, object]) -> str:
    """The module that a dotted name is, or lies in; "" for one of another folder."""
    while name and name not in modules:
        name = name.rpartition(".")[0]
    return name


def _imported(module: ast.Module, name: str) -> Iterator[str]:
    for node in _top_level(module.body):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                base = ".".join(filter(None, [name.rsplit(".", node.level)[0], base]))
            yield from (f"{base}.{each.name}" for each in node.names)


def _top_level(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Statements that run when the module is imported, or that only a type checker reads."""
    for node in body:
        yield node
        if isinstance(node, ast.If | ast.Try):
            yield from _top_level(node.body)
            yield from _top_level(node.orelse)
