"""Check a version without loading it: parameters, the kind of its file, and the arguments of its program.

core check ─► [check_version] ─► files, script_code, exported_file ─► complete, check.  Nothing is unpickled,
and torch is not imported.
"""

from __future__ import annotations

import json
import zipfile
from importlib.util import find_spec
from pathlib import Path

from backend_pytorch.check import check
from backend_pytorch.complete import complete_exported, no_types
from backend_pytorch.exported_file import exported_program
from backend_pytorch.files import Format, format_of, is_checkpoint, model_file
from backend_pytorch.parameters import Parameters
from backend_pytorch.program import Program
from backend_pytorch.script_code import NoForward, Unclear, read_part, script_ports
from core.backend import Backend
from core.completion import is_described
from core.config import ModelConfig
from core.errors import internal, unavailable, unsupported
from core.model_file import not_found


def check_version(config: ModelConfig, path: Path, backend: Backend) -> bool:
    """Complete the configuration, and compare it with the file; return whether the file says enough.

    path   the version's folder
    Raises the CoreError of a load for a missing or damaged file, for weights in the place of a program, for a
    configuration that a file without datatypes needs, and for an entry or parameter that does not fit.
    """
    if find_spec("torch") is None:
        raise unavailable("backend 'pytorch' cannot import torch: it is not installed")
    Parameters(config).check()
    described = is_described(config)
    if config.runtime.endswith(".py"):
        if not described:
            raise no_types(config, "a module in Python", None)
        return _check_module(config, path)
    file = model_file(config, path)
    found = format_of(file, config.name)
    if found is Format.CHECKPOINT:
        raise is_checkpoint(file, config.name)
    if found is Format.TORCHSCRIPT:
        return _check_script(config, file)
    _refuse_pickles(file, config.name)
    if found is Format.AOTI:
        if not described:
            raise no_types(config, found.value, None)
        return True
    return _check_exported(config, file, backend)


def _check_module(config: ModelConfig, path: Path) -> bool:
    """Check the files of a module in Python; return True: what its code does shows a load only."""
    named = config.default_model_filename
    code = path / (named if named.endswith(".py") else "model.py")
    weights = path / (named if named and not named.endswith(".py") else f"{code.stem}.pt")
    if weights.is_file() and format_of(weights, config.name) is Format.TORCHSCRIPT:
        return _check_script(config, weights)
    if not code.is_file():
        raise not_found(code, config.name)
    return True


def _check_exported(config: ModelConfig, file: Path, backend: Backend) -> bool:
    try:
        program = exported_program(file, config.name)
    except Unclear:
        return False
    if not is_described(config):
        complete_exported(config, program, backend)
    check(config, program)
    return True


def _check_script(config: ModelConfig, file: Path) -> bool:
    program = Program()
    program.kind = "TorchScript"
    try:
        program.takes = script_ports(file, config.name)
    except NoForward as error:
        raise internal(
            f"model '{config.name}': '{file}' has no method 'forward'; export one (there is "
            f"{', '.join(error.methods) or 'none'})"
        ) from None
    except Unclear:
        return False
    if not is_described(config):
        raise no_types(config, Format.TORCHSCRIPT.value, program)
    check(config, program)
    return True


def _refuse_pickles(file: Path, model: str) -> None:
    """Raise CoreError(UNSUPPORTED) for a file whose weights or constants are marked as pickled."""
    with zipfile.ZipFile(file) as archive:
        for name in archive.namelist():
            if not (name.endswith(".json") and "_config" in name):
                continue
            try:
                value = json.loads(read_part(archive, name))
            except (Unclear, ValueError, RecursionError):
                continue
            entries = value.get("config", {}) if isinstance(value, dict) else {}
            for key, entry in entries.items() if isinstance(entries, dict) else ():
                if isinstance(entry, dict) and entry.get("use_pickle"):
                    raise unsupported(
                        f"model '{model}': '{key}' of '{name}' in '{file}' holds more than plain tensors, "
                        "and reading it would run code of a pickle; export the model without custom objects"
                    )
