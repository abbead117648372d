"""A Program from an nn.Module in a Python file, with or without weights: `runtime: "model.py"`.

files ─► [ModuleSource] ─► a module for each instance ─► naming, instance.  The file is the operator's own
code and runs in the server's process. Weights are read as plain tensors only.
"""

from __future__ import annotations

import importlib.util
import inspect
import logging
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from backend_pytorch.files import Format, cannot_load, format_of
from backend_pytorch.framework import first_line, loading_alone
from backend_pytorch.parameters import COMPILE
from backend_pytorch.program import Port, Program
from backend_pytorch.tensors import flat
from core.config import ModelConfig
from core.errors import CoreError, internal, invalid
from core.model_file import not_found

logger = logging.getLogger("core")

RUNTIME = "model.py"

_beside: set[str] = set()  # names of modules that models have imported from their folders


class ModuleProgram(Program):
    """A module of one instance. It may write to its inputs and results, so these are copied."""

    kind = "Python"
    writes_inputs = True
    keeps_outputs = True

    def __init__(self, module: Any, run: Any, model: str):
        self.module = module
        self.takes = _ports(module, model)
        self._run = run

    @property
    def device(self) -> Any:
        """The device of the first parameter or buffer; the CPU if there is none."""
        for each in (*self.module.parameters(), *self.module.buffers()):
            return each.device
        return torch.device("cpu")

    def run(self, arguments: list[Any] | dict[str, Any]) -> list[Any] | dict[str, Any]:
        return flat(self._run(*arguments))


class ModuleSource:
    """The class and the weights of one model version.

    Raises CoreError for a file that cannot be imported or has no nn.Module, and for weights that are not
    plain tensors.
    """

    def __init__(self, code: Path, weights: Path | None, config: ModelConfig, wanted: str):
        self._model = config.name
        self._code = code
        self._class = _module_class(_imported(code, config.name), wanted, code, config.name)
        self._weights = None if weights is None else _state(weights, config.name)
        self._path = weights

    def make(
        self, device: Any, compiled: dict[str, Any] | None, first: Any = None
    ) -> ModuleProgram:
        """Return a program with a new module.

        device     a torch.device, None for a module that chooses its devices itself
        compiled   arguments of torch.compile; None to run without it
        first      a module whose parameters the new one shares; buffers are not shared
        Raises CoreError if the class, its weights or torch.compile fail.
        """
        try:
            module = self._class()
        except Exception as error:
            raise internal(
                f"model '{self._model}': {self._class.__name__}() of '{self._code}' failed: "
                f"{type(error).__name__}: {error}; the class is made without arguments"
            ) from error
        if self._weights is not None:
            self._load(module)
        if device is not None:
            module = module.to(device)
        if first is not None:
            module.load_state_dict(dict(first.named_parameters()), strict=False, assign=True)
        module.eval()
        module.requires_grad_(False)
        return ModuleProgram(module, self._compiled(module, compiled), self._model)

    def _compiled(self, module: Any, arguments: dict[str, Any] | None) -> Any:
        if arguments is None:
            return module
        try:
            return torch.compile(module, **arguments)
        except Exception as error:
            raise invalid(
                f"model '{self._model}': torch.compile refuses the parameter '{COMPILE}': "
                f"{first_line(error)}"
            ) from error

    def _load(self, module: Any) -> None:
        try:
            module.load_state_dict(self._weights)
        except Exception as error:
            raise internal(
                f"model '{self._model}': the weights of '{self._path}' do not fit class "
                f"{self._class.__name__} of '{self._code}': {first_line(error)}"
            ) from error


def files_of(config: ModelConfig, directory: Path) -> tuple[Path, Path | None]:
    """Return the Python file and the weights (None if there are none), or a TorchScript file and None.

    default_model_filename names the Python file if it ends in .py, and the weights have that name with .pt.
    Otherwise it names the weights (core completes it to model.pt), and the Python file is model.py. If the
    file of the weights is a TorchScript program, that program runs, as in Triton.
    Raises CoreError(UNAVAILABLE) if neither file is there.
    """
    named = config.default_model_filename
    code = directory / (named if named.endswith(".py") else RUNTIME)
    weights = directory / (named if named and not named.endswith(".py") else f"{code.stem}.pt")
    if weights.is_file() and format_of(weights, config.name) is Format.TORCHSCRIPT:
        return weights, None
    if not code.is_file():
        raise not_found(code, config.name)
    return code, weights if weights.is_file() else None


def _imported(code: Path, model: str) -> Any:
    """Import the file under a name made of its path, because models may have files of the same name.

    Return the module. Raises CoreError(INTERNAL) if the import fails.
    """
    name = f"_backend_pytorch_{abs(hash(code))}"
    spec = importlib.util.spec_from_file_location(name, code)
    assert spec is not None and spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    with loading_alone(), _alone(code.parent):
        sys.modules[name] = found  # dataclasses and torch.compile look up classes there
        try:
            spec.loader.exec_module(found)
        except (Exception, SystemExit) as error:
            sys.modules.pop(name, None)
            raise internal(
                f"model '{model}': '{code}' cannot be imported: {type(error).__name__}: {error}"
            ) from error
    return found


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Inside the with statement, imports find the current files of `folder`, and none of other models."""
    others = {name: sys.modules.pop(name) for name in _beside & sys.modules.keys()}
    before, writes = set(sys.modules), not sys.dont_write_bytecode
    sys.path.insert(0, str(folder))
    # Python identifies bytecode by the time in seconds and the size of the source, so a quick change is lost.
    sys.dont_write_bytecode = True
    importlib.invalidate_caches()
    try:
        yield
    finally:
        sys.path.remove(str(folder))
        sys.dont_write_bytecode = not writes
        found = {name for name in set(sys.modules) - before if _lies_in(folder, name)}
        _beside.update(found)
        # Functions of other models may import their modules again, unless this model has the name now.
        taken = {name.partition(".")[0] for name in found}
        for name, module in others.items():
            if name.partition(".")[0] not in taken:
                sys.modules[name] = module


def _lies_in(folder: Path, name: str) -> bool:
    places = [
        getattr(sys.modules[name], "__file__", None),
        *getattr(sys.modules[name], "__path__", ()),
    ]
    return any(place and folder in Path(place).parents for place in places)


def _module_class(module: Any, wanted: str, code: Path, model: str) -> Any:
    """Return the nn.Module of a file: parameter MODEL_CLASS, or the first by name, like Triton.

    Imported classes count only if the file defines none.
    Raises CoreError(INVALID) if there is no such class.
    """
    classes = {
        name: each
        for name, each in sorted(vars(module).items())
        if inspect.isclass(each) and issubclass(each, torch.nn.Module)
    }
    if wanted:
        if wanted not in classes:
            raise invalid(
                f"model '{model}': parameter 'MODEL_CLASS' is '{wanted}', '{code}' has "
                f"{', '.join(classes) or 'no subclass of torch.nn.Module'}"
            )
        return classes[wanted]
    own = {name: each for name, each in classes.items() if each.__module__ == module.__name__}
    if not classes:
        raise invalid(f"model '{model}': '{code}' has no subclass of torch.nn.Module")
    chosen = own or classes
    name = next(iter(chosen))
    if len(chosen) > 1:
        logger.warning(
            "model '%s': '%s' has several modules (%s); %s is served, the first by name: parameter "
            "MODEL_CLASS names another",
            model,
            code,
            ", ".join(chosen),
            name,
        )
    return chosen[name]


def _state(path: Path, model: str) -> Any:
    """Return the state dict of a file of torch.save, or of a pickle of plain tensors.

    Raises CoreError for a file that has anything else.
    """
    try:
        found = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:
        raise cannot_load(
            path,
            model,
            _why_not_plain(error),
            "only a state dict of plain tensors is read, nothing else is unpickled: "
            "torch.save(model.state_dict(), 'model.pt')",
        ) from error
    if not isinstance(found, Mapping):
        raise internal(
            f"model '{model}': '{path}' holds a {type(found).__name__}, not a state dict; save it with "
            "torch.save(model.state_dict(), 'model.pt')"
        )
    return found


def _why_not_plain(error: Exception) -> str:
    """Return the reason of an error without torch's advice to unpickle the file nevertheless."""
    found = re.search(r"unsupported (GLOBAL|global:? GLOBAL) [\w.]+", str(error), re.IGNORECASE)
    if found:
        return f"it needs code: {found[0]}"
    return first_line(error).splitlines()[0].partition(" In PyTorch 2.6")[0]


def _ports(module: Any, model: str) -> list[Port]:
    parameters = inspect.signature(module.forward).parameters.values()
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    for each in parameters:
        if each.kind is each.KEYWORD_ONLY and each.default is each.empty:
            raise CoreError(
                invalid("").kind,
                f"model '{model}': forward takes '{each.name}' by keyword only; arguments are given in order",
            )
    return [
        Port(
            each.name,
            optional=each.default is not each.empty,
            default=None if each.default is each.empty else each.default,
        )
        for each in parameters
        if each.kind in kinds
    ]
