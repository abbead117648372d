"""The files of the product and their definitions.

`ast` reads Python files, regular expressions for classes and functions read Cython files.
"""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDERS = ("core", "frontends", "backends", "plugins", "clients")
SUFFIXES = {".py", ".pyx", ".pxd", ".pyi", ".hpp", ".cpp", ".h", ".proto"}

_CYTHON_CLASS = re.compile(r"^(?:cdef |cpdef )?class (\w+)")
_CYTHON_METHOD = re.compile(
    r"^    (?:async )?(?:def|cdef|cpdef)\b[^=\n]*?(\w+)\(([^)]*)", re.MULTILINE
)
_CYTHON_FUNCTION = re.compile(
    r"^(?:async )?(?:def|cdef|cpdef)\b[^=\n]*?(\w+)\(([^)]*)", re.MULTILINE
)


@dataclass(frozen=True)
class Defined:
    """A class or a function.

    place     file and name, such as core/batch.py Batch
    size      methods of a class, positional parameters of a function (without self)
    """

    place: str
    name: str
    size: int


@cache
def files(*folders: str) -> tuple[Path, ...]:
    """Every product file below the folders, relative to the root: no tests, no templates."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", *folders],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.splitlines()
    found = (Path(line) for line in listed)
    return tuple(
        path
        for path in found
        if path.suffix in SUFFIXES
        and not {"tests", "_template"} & set(path.parts)
        and (ROOT / path).is_file()
    )


@cache
def text(path: Path) -> str:
    return (ROOT / path).read_text()


def lines(path: Path) -> int:
    return text(path).count("\n")


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(text(path))


def classes(*folders: str) -> Iterator[Defined]:
    """Every class at the top level of a module, with its number of methods."""
    for path in files(*folders):
        if path.suffix == ".py":
            for node in tree(path).body:
                if isinstance(node, ast.ClassDef):
                    yield Defined(f"{path} {node.name}", node.name, _methods(node))
        elif path.suffix == ".pyx":
            yield from _cython_classes(path)


def functions(*folders: str) -> Iterator[Defined]:
    """Every function and method, with its number of positional parameters."""
    for path in files(*folders):
        if path.suffix == ".py":
            for node in ast.walk(tree(path)):
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                    yield Defined(f"{path} {node.name}", node.name, _positional(node))
        elif path.suffix == ".pyx":
            for pattern in (_CYTHON_METHOD, _CYTHON_FUNCTION):
                for name, parameters in pattern.findall(text(path)):
                    yield Defined(f"{path} {name}", name, _cython_positional(parameters))


def _methods(node: ast.ClassDef) -> int:
    """Methods, without those that Python calls by itself and those that are read as attributes."""
    found = [each for each in node.body if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)]
    return sum(not _is_dunder(each.name) and not _is_property(each) for each in found)


def _is_dunder(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")


def _is_property(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    names = {ast.unparse(each) for each in node.decorator_list}
    return bool(names & {"property", "cached_property", "functools.cached_property"})


def _positional(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    names = [each.arg for each in (*node.args.posonlyargs, *node.args.args)]
    return len(names) - (names[:1] in (["self"], ["cls"]))


def _cython_classes(path: Path) -> Iterator[Defined]:
    parts = re.split(r"(?m)^(?=(?:cdef |cpdef )?class \w)", text(path))
    for part in parts:
        if found := _CYTHON_CLASS.match(part):
            body = re.split(r"(?m)^(?=[^\s#)\]}])", part[found.end() :])[0]
            methods = [name for name, _ in _CYTHON_METHOD.findall(body) if not _is_dunder(name)]
            yield Defined(f"{path} {found[1]}", found[1], len(methods))


def _cython_positional(parameters: str) -> int:
    names = [each.strip() for each in parameters.partition("*,")[0].split(",") if each.strip()]
    return len(names) - (names[:1] in (["self"], ["cls"]))
