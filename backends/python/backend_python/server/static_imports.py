"""Find imports of a model's file that cannot succeed, without running it.

Only the first imports of a file count: a load always runs these. Any other statement, and a module of the
model's own, may install more modules or change where Python looks for them. The first part of a dotted name
is looked up. To find the rest, Python must run that package.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path

from core.errors import internal

# What a file may do to find more modules than the server.
_OWN_WAYS = re.compile(rb"\bsys\s*\.\s*(path|meta_path|modules)|from\s+sys\b|\baddsitedir\b")


def check_imports(
    tree: ast.Module, file: Path, source: bytes, model: str, folders: Sequence[Path]
) -> None:
    """Raise the CoreError of a load for a module that is not installed.

    folders   where the model's own modules may be
    A file that changes where Python looks for modules is not checked. Nothing is imported.
    """
    if _OWN_WAYS.search(source):
        return
    for line, name in _imported(tree):
        if _is_own(name, folders):
            return
        if not _is_there(name):
            raise internal(
                f"model '{model}': '{file}' line {line}: ModuleNotFoundError: No module named '{name}'; "
                "install it where the server runs, or give the model an environment "
                "(EXECUTION_ENV_PATH, REQUIREMENTS)"
            )


def _imported(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield line and first part of the name of each import, up to a statement that may do anything else."""
    for each in tree.body:
        if isinstance(each, ast.Import):
            for alias in each.names:
                yield each.lineno, alias.name.partition(".")[0]
        elif isinstance(each, ast.ImportFrom) and each.module and not each.level:
            yield each.lineno, each.module.partition(".")[0]
        elif not _is_harmless(each):  # also a relative import, which is of the version's folder
            return


def _is_harmless(statement: ast.stmt) -> bool:
    """Return whether a statement is a docstring, or an assignment that calls nothing."""
    if isinstance(statement, ast.Expr):
        return isinstance(statement.value, ast.Constant)
    if not isinstance(statement, ast.Assign | ast.AnnAssign):
        return False
    return not any(isinstance(each, ast.Call | ast.Await) for each in ast.walk(statement))


def _is_own(name: str, folders: Sequence[Path]) -> bool:
    """Return whether a module may be the model's own: a package, a file, an extension module."""
    return any(
        next(folder.glob(f"{name}.*"), None) or (folder / name).is_dir() for folder in folders
    )


def _is_there(name: str) -> bool:
    if name in sys.modules or name in sys.builtin_module_names:
        return True
    # A server may also find modules in its current folder.
    here = Path.cwd()
    if (here / f"{name}.py").is_file() or (here / name).is_dir():
        return True
    try:
        return find_spec(name) is not None
    except (ImportError, ValueError):  # a finder of another package fails: only a load can tell
        return True
