"""A Program from an AOTInductor package: compiled code with the structure of its arguments and results.

files ─► [open_aoti] ─► naming, instance.  The package has no datatypes and shapes of its results. Its code is
compiled for one kind of device, and for the instructions of one kind of processor.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import torch
from torch.utils import _pytree as pytree

from backend_pytorch.aoti_source import Argument, arguments_of
from backend_pytorch.files import cannot_load
from backend_pytorch.framework import first_line
from backend_pytorch.program import Port, Program
from backend_pytorch.structure import input_names, output_names
from core.errors import unsupported

logger = logging.getLogger("core")


class AotiProgram(Program):
    """A loaded package. It can run on as many threads at once as `open_aoti` has runners."""

    kind = "AOTInductor"
    # The package does not say whether it writes to its arguments.
    writes_inputs = True

    def __init__(self, loader: Any, arguments: list[Argument] | None, model: str):
        self._loader = loader
        taken, given = (pytree.treespec_loads(text) for text in loader.get_call_spec())
        names = input_names(taken, model)
        if arguments is not None and len(arguments) != len(names):
            arguments = None
        self._arguments = arguments or []
        self.takes = [
            Port(f"INPUT__{i}", (name,), *_known(arguments, i)) for i, name in enumerate(names)
        ]
        self.most_rows = min(each.most.get(0, 0) for each in arguments) if arguments else 0
        self.gives = [
            Port(f"OUTPUT__{i}", (name,)) for i, name in enumerate(output_names(given, model))
        ]

    def run(self, arguments: list[Any] | dict[str, Any]) -> list[Any]:
        given = list(arguments)
        for argument, tensor, port in zip(self._arguments, given, self.takes or (), strict=False):
            if refusal := argument.refusal(tensor):
                raise ValueError(f"{port.name} ({port.aliases[0]}) has {refusal}")
        return list(self._loader.boxed_run(given))


def open_aoti(
    path: Path, device: Any, model: str, runners: int, *, captured: bool = False
) -> AotiProgram:
    """Load a package. torch unpacks its library into the temporary folder, where it stays.

    device    a torch.device, None for the one that the package is compiled for
    runners   maximum number of concurrent runs
    captured  whether CUDA graphs of its runs are captured; it then runs on one thread only
    Raises CoreError with the file, the reason and advice.
    """
    index = device.index if device is not None and device.type == "cuda" else -1
    try:
        count = 1 if captured else runners
        loader = torch._C._aoti.AOTIModelPackageLoader(str(path), "model", captured, count, index)
        metadata = loader.get_metadata()
        arguments = arguments_of(path)
    except Exception as error:
        raise cannot_load(
            path,
            model,
            first_line(error).splitlines()[0],
            "compile it again with torch._inductor.aoti_compile_and_package, on a machine of this kind and "
            "with this torch",
        ) from error
    compiled_for = metadata.get("AOTI_DEVICE_KEY", "")
    if device is not None and compiled_for and compiled_for != device.type:
        kind = "KIND_GPU" if compiled_for == "cuda" else "KIND_CPU"
        raise unsupported(
            f"model '{model}': '{path}' was compiled for {compiled_for}, the instance is on {device}; use "
            f"instance_group {{ kind: {kind} }}, or compile the model for {device.type}"
        )
    if arguments is None:
        logger.warning(
            "model '%s': the source in '%s' is not there or of an unknown form, so shapes of inputs cannot "
            "be checked against it; its code trusts those of config.pbtxt",
            model,
            path,
        )
    return AotiProgram(loader, arguments, model)


def _known(arguments: list[Argument] | None, i: int) -> tuple[Any, Any]:
    """Return datatype and dims of argument number `i`; None, None if the arguments are unknown."""
    return (arguments[i].dtype, arguments[i].dims) if arguments is not None else (None, None)
