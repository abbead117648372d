"""A Program from a TorchScript file.

files ─► [open_torchscript] ─► naming, instance.  The file has names and kinds of arguments, but no datatypes
and no shapes.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import torch

from backend_pytorch.effects import Effects, effects_of
from backend_pytorch.files import cannot_load
from backend_pytorch.framework import first_line
from backend_pytorch.program import Port, Program
from backend_pytorch.tensors import flat
from core.errors import CoreError, unsupported

logger = logging.getLogger("core")


class ScriptProgram(Program):
    """A torch.jit.ScriptModule. It can run on several threads at once."""

    kind = "TorchScript"

    def __init__(self, module: Any, model: str, *, optimized: bool):
        self.module = module
        self.takes = _ports(module, model)
        hooks = module._forward_hooks or module._forward_pre_hooks
        # A call of the module looks for hooks first; most modules have none.
        self._forward = module if hooks else module.forward
        self._optimized = optimized
        effects = _effects(module)
        self.writes_inputs = effects.writes_inputs
        self.keeps_outputs = effects.writes_itself

    def run(self, arguments: list[Any] | dict[str, Any]) -> list[Any] | dict[str, Any]:
        given = [arguments] if isinstance(arguments, dict) else arguments
        if self._optimized:
            return flat(self._forward(*given))
        with torch.jit.optimized_execution(False):
            return flat(self._forward(*given))


def open_torchscript(path: Path, device: Any, model: str, *, optimized: bool) -> ScriptProgram:
    """Load a file. Takes long for large files.

    device      a torch.device, None to keep the devices of the file
    optimized   whether torch compiles the program during its first runs
    Raises CoreError with the file, the reason and advice.
    """
    try:
        module = torch.jit.load(str(path), map_location=device)
    except Exception as error:
        raise _not_loaded(path, model, error) from error
    if not hasattr(module, "forward"):
        methods = [each for each in dir(module._c) if not each.startswith("_")]
        raise cannot_load(
            path,
            model,
            "it has no method 'forward'",
            f"export one (there is {', '.join(module._c._method_names()) or 'none'})"
            if methods
            else "export one",
        )
    if module.training:
        logger.warning(
            "model '%s': '%s' was saved in training mode, so dropout and batch normalisation act as in "
            "training; call model.eval() before it is exported",
            model,
            path,
        )
    return ScriptProgram(module, model, optimized=optimized)


def _not_loaded(path: Path, model: str, error: Exception) -> CoreError:
    text = first_line(error)
    if "Unknown builtin op" in text or ("operator" in text.lower() and "::" in text):
        advice = (
            "an operator of it is not there: a newer torch may have it, or the package that brings it "
            "(torchvision, …), which must be imported by a plugin of the server"
        )
    elif "CUDA" in text:
        advice = "use a torch with CUDA, or instance_group { kind: KIND_CPU }"
    else:
        advice = "copy the file again, or export it again with torch.jit.save and a torch that is no newer"
    return cannot_load(path, model, text.splitlines()[0], advice)


def _effects(module: Any) -> Effects:
    try:
        return effects_of(module)
    # The graph is a private interface of torch. If it fails, inputs and outputs are copied.
    except Exception:
        logger.debug("no effects of a TorchScript program", exc_info=True)
        return Effects(writes_inputs=True, writes_itself=True)


def _ports(module: Any, model: str) -> list[Port] | None:
    """Return the arguments of forward; None if it takes a single dict of tensors.

    Raises CoreError(UNSUPPORTED) for an argument of another type without a default.
    """
    arguments = module.forward.schema.arguments[1:]  # the first is the module
    if len(arguments) == 1 and str(arguments[0].type) == "Dict[str, Tensor]":
        return None
    return [_port(argument, model) for argument in arguments]


def _port(argument: Any, model: str) -> Port:
    kind = str(argument.type)
    optional = bool(argument.has_default_value()) or kind.startswith("Optional[")
    inner = kind.removeprefix("Optional[").removesuffix("]") if optional else kind
    inner = "List[str]" if inner in ("List[str", "List[str]") else inner
    if inner not in ("Tensor", "List[str]") and not optional:
        raise unsupported(
            f"model '{model}': argument '{argument.name}' of forward is of type {kind}; clients can send "
            "tensors and List[str] (or one Dict[str, Tensor] alone): give it a default, or export a module "
            "that takes a tensor in its place"
        )
    return Port(
        argument.name,
        text=inner == "List[str]",
        optional=optional,
        default=argument.default_value if argument.has_default_value() else None,
    )
