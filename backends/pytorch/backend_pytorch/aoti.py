"""A Program of an AOTInductor package: compiled code, with the structure of its arguments.

files ─► [open_aoti] ─► naming, instance.  The package tells no datatypes and no shapes. Its code was compiled
for one kind of device, and for the instructions of one kind of processor.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import torch
from torch.utils import _pytree as pytree

from backend_pytorch.files import cannot_load
from backend_pytorch.framework import first_line
from backend_pytorch.program import Port, Program
from backend_pytorch.structure import input_names, output_names
from core.errors import unsupported

# Compiled code trusts its arguments unless this is set: with another shape it reads what lies behind them.
_CHECK_INPUTS = "AOTI_RUNTIME_CHECK_INPUTS"


class AotiProgram(Program):
    """A loaded package. May run on several threads at once, as many as it was loaded for."""

    kind = "AOTInductor"
    # Nothing in the package says whether it writes to its arguments.
    writes_inputs = True

    def __init__(self, loader: Any, model: str):
        self._loader = loader
        taken, given = (pytree.treespec_loads(text) for text in loader.get_call_spec())
        self.takes = [
            Port(f"INPUT__{i}", (name,)) for i, name in enumerate(input_names(taken, model))
        ]
        self.gives = [
            Port(f"OUTPUT__{i}", (name,)) for i, name in enumerate(output_names(given, model))
        ]

    def run(self, arguments: list[Any] | dict[str, Any]) -> list[Any]:
        return list(self._loader.boxed_run(list(arguments)))


def open_aoti(path: Path, device: Any, model: str, runners: int) -> AotiProgram:
    """Load a package. Its library is unpacked into the temporary folder and stays there.

    device    a torch.device, None to take the one that it was compiled for
    runners   how many runs may go on at once
    Raises CoreError with file, reason and next step.
    """
    os.environ[_CHECK_INPUTS] = "1"  # read by each library when it first runs
    try:
        loader = torch._C._aoti.AOTIModelPackageLoader(
            str(path), "model", False, runners, _index(device)
        )
        metadata = loader.get_metadata()
    except Exception as error:
        raise cannot_load(
            path,
            model,
            torch.__version__,
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
    return AotiProgram(loader, model)


def _index(device: Any) -> int:
    return device.index if device is not None and device.type == "cuda" else -1
