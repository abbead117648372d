"""Check a version without running it: its parameters, and the syntax and the names of its Python file.

core check ─► [check_version].  The file is parsed, never imported. What its code does, only a load can tell.
"""

from __future__ import annotations

import ast
import logging
import os
import re
from collections.abc import Iterator
from pathlib import Path

from backend_python.environments.archive import is_archive
from backend_python.environments.choice import Choice, chosen
from backend_python.environments.settings import EnvironmentSettings
from backend_python.runner import CLASS
from backend_python.server.complete import FUNCTION
from backend_python.server.found import add_adapters
from backend_python.server.model import PythonModel, model_file_of
from backend_python.server.static_imports import check_imports
from core.backend import Backend
from core.config import ModelConfig
from core.errors import CoreError, internal
from core.plugins import file_of

logger = logging.getLogger("core")

# Beyond these bounds the parser might take the memory or the stack of the process.
_MOST_BYTES = 8 << 20
_NESTED = re.compile(rb"[-+~([{]{100}|(?:not\s+){100}|(?:lambda\s*:\s*){100}|(?:await\s+){100}")
_MOST_SIGNS = 20_000  # operators in one line
_COMMENT_LINES = re.compile(rb"^[ \t]*#.*", re.MULTILINE)


def check_version(config: ModelConfig, path: Path, backend: Backend) -> bool:
    """Compare the parameters and the Python file with what a load needs; return whether all is known.

    It is False for a file whose auto_complete_config may change the configuration, for files without a
    TritonPythonModel, for files of adapters, and for a file that is too large or deep to be parsed here.
    path   the version's folder
    Raises the CoreError of a load for a missing file, a wrong parameter, wrong syntax, an import that cannot
    succeed, and a missing class.
    """
    model = PythonModel()
    model.name, model.version = config.name, int(path.name) if path.name.isdecimal() else 1
    model.path, model.directory = path, path.parent
    model.config, model.backend = config, backend
    model.check_settings()
    own_environment = _check_environment(config, path, backend)
    file = model_file_of(config, path, backend)
    if file.suffix != ".py":
        return False
    tree = _parsed(file, config.name, own_environment)
    if tree is None:
        return False
    if not own_environment:
        own = [file.parent] if file_of(backend) is not None else [file.parent, file.parent.parent]
        check_imports(tree, file, file.read_bytes(), config.name, own)
    return _check_class(tree, file, config, backend)


def _check_environment(config: ModelConfig, path: Path, backend: Backend) -> bool:
    """Return whether the model has packages of its own. Raises CoreError if their place is wrong."""
    of_folder = file_of(backend)
    settings = EnvironmentSettings(backend.config)
    choice = chosen(config, path, settings, of_folder.parent if of_folder is not None else None)
    if choice is None:
        return False
    if choice.path:
        _check_place(choice, Path(choice.path))
    return True


def _check_place(choice: Choice, place: Path) -> None:
    """Refuse a path of an environment that is missing, or a file of another kind. Nothing is unpacked."""
    if not place.exists():
        raise choice.error("does not exist")
    try:
        usable = place.is_dir() or os.access(place, os.X_OK) or is_archive(place)
    except OSError as error:
        raise choice.error(f"cannot be read: {error}") from None
    if not usable:
        raise choice.error(
            "is no archive of a kind that is known, and no program; expected an archive of conda-pack, the "
            "folder of an environment, or a Python interpreter"
        )


def _parsed(file: Path, model: str, own_environment: bool) -> ast.Module | None:
    """Return the syntax tree of a file; None if only a load can tell whether the file can be read.

    Raises CoreError(INTERNAL) for wrong syntax.
    """
    if file.stat().st_size > _MOST_BYTES:
        return None
    source = file.read_bytes()
    if _may_be_deep(_COMMENT_LINES.sub(b"", source)):
        return None
    try:
        return ast.parse(source, file.name)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        if own_environment:  # another version of Python may read the file
            return None
        raise _syntax_error(file, model, error) from None


def _may_be_deep(source: bytes) -> bool:
    """Return whether the parser may need too much memory: it needs some for each operator and bracket."""
    signs = (len(re.findall(rb"[-+*/.,&|^<>=]", line)) for line in source.split(b"\n"))
    return _NESTED.search(source) is not None or max(signs) > _MOST_SIGNS


def _syntax_error(file: Path, model: str, error: BaseException) -> CoreError:
    place = f" line {error.lineno}" if isinstance(error, SyntaxError) and error.lineno else ""
    text = error.msg if isinstance(error, SyntaxError) else str(error)
    return internal(f"model '{model}': '{file}'{place}: {type(error).__name__}: {text}")


def _check_class(tree: ast.Module, file: Path, config: ModelConfig, backend: Backend) -> bool:
    """Check what the file defines at its top level; return whether nothing can change the configuration."""
    names, is_open = _defined(tree.body)
    if CLASS not in names:
        if is_open or (file_of(backend) is None and _is_for_adapters(names)):
            return False
        there = ", ".join(sorted(names)) or "nothing"
        raise internal(f"model '{config.name}': '{file}' has no class {CLASS}: it defines {there}")
    made = names[CLASS]
    if not isinstance(made, ast.ClassDef) or made.bases or made.keywords or made.decorator_list:
        return False
    methods, is_open = _defined(made.body)
    if b"setattr" in file.read_bytes() or is_open:
        return False
    if "execute" not in methods:
        logger.warning(
            "model '%s': '%s' does not implement `execute` in %s: each request fails",
            config.name,
            file,
            CLASS,
        )
    return FUNCTION not in methods


def _is_for_adapters(names: dict[str, ast.stmt]) -> bool:
    """Return whether an installed adapter may serve the file: it has a function or another class."""
    may = any(
        isinstance(
            each, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)
        )
        for each in names.values()
    )
    return bool(add_adapters()) and may


def _defined(body: list[ast.stmt]) -> tuple[dict[str, ast.stmt], bool]:
    """Return the names that statements define, and whether there may be others.

    Statements inside `if`, `try`, `with` and loops count as well.
    """
    names: dict[str, ast.stmt] = {}
    is_open = False
    for each in _statements(body):
        if isinstance(each, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            names[each.name] = each
        elif isinstance(each, (ast.Import, ast.ImportFrom)):
            for alias in each.names:
                is_open = is_open or alias.name == "*"
                names[(alias.asname or alias.name).partition(".")[0]] = each
        elif isinstance(each, ast.Delete):
            is_open = is_open or each not in body  # it may not run
            for target in each.targets:
                names.pop(getattr(target, "id", ""), None)
        else:
            names.update((name, each) for name in _assigned(each))
            is_open = is_open or _calls(each, ("globals", "exec", "setattr", "vars"))
    return names, is_open


def _statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    waiting = list(reversed(body))
    while waiting:
        each = waiting.pop()
        yield each
        for field in ("body", "orelse", "finalbody"):
            if not isinstance(each, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
                waiting.extend(reversed(getattr(each, field, [])))
        for handler in getattr(each, "handlers", []):
            waiting.extend(reversed(handler.body))


def _assigned(statement: ast.stmt) -> Iterator[str]:
    targets: list[ast.expr] = []
    if isinstance(statement, ast.Assign):
        targets = statement.targets
    elif isinstance(statement, (ast.AnnAssign, ast.AugAssign)):
        targets = [statement.target]
    for target in targets:
        for node in ast.walk(target):
            if isinstance(node, ast.Name):
                yield node.id


def _calls(statement: ast.stmt, functions: tuple[str, ...]) -> bool:
    if not isinstance(statement, (ast.Expr, ast.Assign)):
        return False
    return any(
        isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in functions
        for node in ast.walk(statement)
    )
