"""ModelFile: a file of a model outside a repository, and the folder of a model that is made from it.

    digits.onnx ─► [model_file] ─► format model.onnx, name digits ─► [make_model] ─► digits/1/model.onnx

The formats that distributions declare (group core.formats) say which backend reads a file. Main thread; may
block.
"""

from __future__ import annotations

import ast
import mmap
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from core.config.formats import Format, Formats
from core.errors import invalid, not_found

TRUSTED = 'parameters { key: "TRUSTED" value { string_value: "true" } }\n'

_WEIGHTS = (".bin", ".data")
"""Suffixes of files with the weights of a model whose graph is in the file beside them."""


@dataclass(frozen=True)
class ModelFile:
    """The file of a model, outside a repository. It may be a folder, such as a SavedModel of TensorFlow.

    name     of the model that is made from it
    format   which the name or the suffix of the file identifies
    trust    whether the user trusts the code in the file
    """

    path: Path
    name: str
    format: Format
    trust: bool = False


def model_file(path: Path, formats: Formats, *, name: str = "", trust: bool = False) -> ModelFile:
    """Return the ModelFile for a file outside a repository. Nothing is written.

    name    of the model; "" for the file's name without its suffix, with _ for other characters than letters,
            digits, _ and -
    trust   whether the user trusts the code in the file
    Raises CoreError: the file is missing, no backend reads such files, several formats fit equally well, or
    the file can hold code and `trust` is False.
    """
    if not path.exists():
        raise not_found(f"there is no file '{path}'")
    found = ModelFile(path, name or _valid_name(path), _format(path, formats), trust)
    if found.format.trust and not trust:
        raise invalid(
            f"'{path}' can hold code, and to read it is to run that code with your rights; it was not read. "
            "If you trust everyone who could write the file, add --trust"
        )
    return found


def make_model(model: ModelFile, folder: Path, *, link: bool) -> Path:
    """Make the folder of a model with its file in version 1; return the file's new path.

    The files beside it that belong to it (`_beside`) go there, too. A config.pbtxt is written only if
    `model.trust` is True, or if another of these files has the name that the format expects; the model's
    file then keeps its own name.

    link   whether to link the files instead of copying them
    Raises OSError, also if the folder has a version 1.
    """
    beside = dict(_beside(model))
    file, config = model.format.file, TRUSTED if model.trust else ""
    if file in beside:  # a module that the file imports has that name
        file = model.path.name
        config += f'backend: "{model.format.backend}"\ndefault_model_filename: "{file}"\n'
    version = folder / "1"
    version.mkdir(parents=True)
    put = _link if link else _copy
    for target, source in {**beside, file: model.path}.items():
        put(source, version / target)
    if config:
        (folder / "config.pbtxt").write_text(config)
    return version / file


def _link(source: Path, target: Path) -> None:
    target.symlink_to(source.absolute(), source.is_dir())


def _copy(source: Path, target: Path) -> None:
    if source.is_dir():
        shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
    else:
        shutil.copy2(source, target)


def _valid_name(path: Path) -> str:
    return re.sub(r"[^\w-]+", "_", path.absolute().stem).strip("_") or "model"


# The format -----------------------------------------------------------------------------------


def _format(path: Path, formats: Formats) -> Format:
    """Return the format of a file: one with the file's name, else model.<suffix>, else one with its suffix.

    Of several such formats, the first in the order of search is taken. Raises CoreError if no format fits, or
    if another one has the same place in the order.
    """
    name, suffix = path.absolute().name, path.suffix.lower()
    fits = [each for each in formats if (each.may_be_folder if path.is_dir() else each.may_be_file)]
    same_suffix = [each for each in fits if suffix and Path(each.file).suffix.lower() == suffix]
    found = (
        [each for each in fits if each.file == name]
        or [each for each in same_suffix if Path(each.file).stem == "model"]
        or same_suffix
    )
    if not found:
        known = ", ".join(dict.fromkeys(Path(each.file).suffix for each in formats)) or "none"
        raise invalid(
            f"no installed backend reads '{path}': found the suffix '{suffix}', known are {known}"
            f"{formats.advice([name])}"
        )
    rivals = [each for each in found if each.order == found[0].order]
    if len({(each.backend, each.file) for each in rivals}) > 1:
        names = ", ".join(f"{each.file} of backend '{each.backend}'" for each in rivals)
        raise invalid(
            f"'{path}' may be several formats: {names}; make the folder of a model yourself, with the file "
            "under one of these names in a folder 1"
        )
    return found[0]


# Files beside ---------------------------------------------------------------------------------


def _beside(model: ModelFile) -> Iterator[tuple[str, Path]]:
    """Yield (name in the version's folder, path) of each file that lies beside the model and belongs to it.

    For a .py file these are the modules and packages that it imports. For another FILE they are FILE.*,
    FILE_* and weights with the same stem; weights are renamed like the model unless FILE contains their
    name. A folder has no such files.
    """
    path = model.path
    if path.is_dir():
        return
    if path.suffix == ".py":
        yield from _imports(path).items()
        return
    for each in sorted(path.absolute().parent.iterdir()):
        if each.name.startswith((f"{path.name}.", f"{path.name}_")):
            yield each.name, each  # such as digits.onnx.data
        elif each.stem == path.stem and each.suffix in _WEIGHTS:
            named = _holds(path, each.name.encode())
            yield (each.name if named else Path(model.format.file).stem + each.suffix), each


def _holds(path: Path, text: bytes) -> bool:
    """Return whether the content of a file contains the text."""
    with path.open("rb") as file:
        if not os.fstat(file.fileno()).st_size:
            return False
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            return content.find(text) >= 0


def _imports(path: Path) -> Mapping[str, Path]:
    """Return name → path of modules (NAME.py) and packages in the folder of a Python file that it imports.

    Those that they import in turn from this folder are included.
    """
    found: dict[str, Path] = {}
    waiting = [path.absolute()]
    while waiting:
        for name in _imported(waiting.pop()):
            module = path.absolute().parent / f"{name}.py"
            package = path.absolute().parent / name
            if module.is_file() and module.name not in found and module != path.absolute():
                found[module.name] = module
                waiting.append(module)
            elif (package / "__init__.py").is_file() and package.name not in found:
                found[package.name] = package
                waiting.extend(package.rglob("*.py"))
    return found


def _imported(path: Path) -> set[str]:
    """Return the top-level names of the modules that a Python file imports; relative imports do not count.

    Return an empty set if the file cannot be read or parsed.
    """
    try:
        tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError, OSError):
        return set()  # the load reports it
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names.update(each.name.partition(".")[0] for each in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module.partition(".")[0])
    return names
