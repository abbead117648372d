"""Read a Python file without running it: its classes, imports, and which servers they are for.

FILE.py ─► [PythonFile] ─► litserve or bento_service
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

from core.errors import invalid
from core_importers.draft import Draft

# Import name → package, where they differ.
_PACKAGES = {
    "PIL": "pillow",
    "bs4": "beautifulsoup4",
    "cv2": "opencv-python-headless",
    "dateutil": "python-dateutil",
    "skimage": "scikit-image",
    "sklearn": "scikit-learn",
    "yaml": "pyyaml",
}


class PythonFile:
    """A parsed file. Raises CoreError(INVALID) if it is no Python 3."""

    def __init__(self, path: Path):
        self.path = path
        try:
            self.tree = ast.parse(path.read_text("utf-8"), str(path))
        except (SyntaxError, ValueError) as error:
            raise invalid(f"'{path}' is no Python 3: {error}") from error
        self.classes = {
            node.name: node for node in ast.walk(self.tree) if isinstance(node, ast.ClassDef)
        }
        self._origins = dict(_imported(self.tree))

    def origin(self, node: ast.expr | None) -> str:
        """Return the dotted name of an expression, such as litserve.LitAPI for ls.LitAPI; "" for another."""
        if isinstance(node, ast.Name):
            return self._origins.get(node.id, node.id)
        if isinstance(node, ast.Attribute) and (before := self.origin(node.value)):
            return f"{before}.{node.attr}"
        return ""

    def extends(self, name: str, base: str) -> bool:
        """Return whether a class of the file extends `base`, a dotted name, directly or not."""
        seen: set[str] = set()
        left = [name]
        while left:
            each = left.pop()
            if each in seen or each not in self.classes:
                continue
            seen.add(each)
            found = [self.origin(node) for node in self.classes[each].bases]
            if base in found:
                return True
            left += found
        return False

    def calls(self, name: str) -> Iterator[ast.Call]:
        """Yield the calls of a dotted name in the file."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Call) and self.origin(node.func) == name:
                yield node

    def copy(self, draft: Draft) -> None:
        """Copy the file, the modules beside it that it imports, and the extras of the command line."""
        draft.copy(self.path, f"source/{self.path.name}")
        folder = self.path.absolute().parent
        for each in self._neighbours(folder):
            draft.copy(each, f"source/{each.name}")
        for extra in draft.wishes.extras:
            if not extra.exists():
                raise invalid(f"--with {extra}: there is no such file or folder")
            inside = extra.absolute().is_relative_to(folder)
            place = extra.absolute().relative_to(folder) if inside else Path(extra.name)
            draft.copy(extra, f"source/{place}")

    def _neighbours(self, folder: Path) -> list[Path]:
        found: list[Path] = []
        left: list[PythonFile] = [self]
        while left:
            for name in left.pop().modules():
                module, package = folder / f"{name}.py", folder / name
                if module.is_file() and module != self.path.absolute() and module not in found:
                    found.append(module)
                    left.append(PythonFile(module))
                elif (package / "__init__.py").is_file() and package not in found:
                    found.append(package)
                    left += map(PythonFile, package.rglob("*.py"))
        return found

    def imports(self) -> set[str]:
        """Return the dotted names that the file imports, such as torch.nn or ts.context.Context."""
        return set(self._origins.values())

    def modules(self) -> set[str]:
        """Return the first names of the modules that the file imports."""
        found = set()
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                found |= {each.name.partition(".")[0] for each in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                found.add(node.module.partition(".")[0])
        return found

    def uses(self, package: str) -> set[str]:
        """Return the names of a package that the file uses or imports, cut to two words: litserve.LitAPI."""
        found = set()
        for node in ast.walk(self.tree):
            if isinstance(node, (ast.Name, ast.Attribute)):
                words = self.origin(node).split(".")
                if words[0] == package and len(words) > 1:
                    found.add(".".join(words[:2]))
        imported = {name for name in self._origins.values() if name.startswith(f"{package}.")}
        return found | {".".join(name.split(".")[:2]) for name in imported}

    def packages(self, *without: str) -> list[str]:
        """Return the packages that the file and its neighbours import, by their names on an index."""
        folder = self.path.absolute().parent
        modules = self.modules()
        for each in self._neighbours(folder):
            files = [each] if each.is_file() else list(each.rglob("*.py"))
            modules |= set().union(*(PythonFile(file).modules() for file in files))
        local = {each.stem for each in self._neighbours(folder)} | {self.path.stem}
        others = modules - set(sys.stdlib_module_names) - local - set(without)
        return sorted(_PACKAGES.get(name, name) for name in others)


def _imported(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Yield (name in the file, dotted origin) for each absolute import, wherever it is in the file."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for each in node.names:
                top = each.name.partition(".")[0]
                yield (each.asname, each.name) if each.asname else (top, top)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for each in node.names:
                yield each.asname or each.name, f"{node.module}.{each.name}"


def read(path: Path, member: str, draft: Draft) -> None:
    """Write the LitAPI or BentoML service of a file into the draft.

    member   CLASS or CLASS.METHOD if the file has several, else ""
    Raises CoreError(INVALID) if there is none, or several and `member` is "", or it cannot be served.
    """
    from core_importers import bento_service, litserve

    file = PythonFile(path)
    apis, services = litserve.classes(file), bento_service.classes(file)
    name, _, method = member.partition(".")
    found = [each for each in [*apis, *services] if name in ("", each)]
    if not found:
        bento_service.refuse_old(file)
        there = ", ".join([*apis, *services])
        raise invalid(
            f"'{path}' has no class '{name}' that can be served; it has {there}"
            if there
            else f"'{path}' has neither a class that extends litserve.LitAPI nor one with @bentoml.service"
        )
    if len(found) > 1:
        raise invalid(f"'{path}' has {', '.join(found)}; name one: {path}:{found[0]}")
    file.copy(draft)
    if found[0] in apis:
        litserve.read(file, found[0], draft)
    else:
        bento_service.read(file, found[0], method, draft)


def constant(node: ast.expr | None) -> object:
    """Return the value of a literal. Raises ValueError for another expression."""
    if node is None:
        return None
    return ast.literal_eval(node)
