"""Complete a configuration from the model file.

config.pbtxt ─► fill ─► [complete] ─► normalise ─► validate.  An exported program has everything. TorchScript,
packages and Python files lack datatypes or shapes: an error lists the names that they have.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from backend_pytorch.files import Format, format_of, is_checkpoint, model_file
from backend_pytorch.framework import import_torch, loading_alone
from backend_pytorch.naming import config_inputs, config_outputs, places
from backend_pytorch.program import Port, Program
from core.backend import Backend
from core.completion import (
    default_max_batch_size,
    fill_max_batch_size,
    fill_scheduler,
    is_described,
    tensors_of_the_server,
)
from core.config import ModelConfig
from core.errors import CoreError, invalid, unsupported


def complete(config: ModelConfig, path: Path, backend: Backend) -> None:
    """Fill in inputs, outputs, max_batch_size and dynamic_batching, in place.

    path   the version's folder
    Does nothing if every input and output is described: a complete configuration stays unchanged.
    Raises CoreError if the file cannot be loaded, or lacks datatypes and shapes.
    """
    if is_described(config):
        return
    if config.runtime.endswith(".py"):
        raise no_types(config, "a module in Python", None)
    import_torch()
    file = model_file(config, path)
    with loading_alone():
        _complete(config, file, backend)


def _complete(config: ModelConfig, file: Path, backend: Backend) -> None:
    found = format_of(file, config.name)
    if found is Format.EXPORTED:
        from backend_pytorch.exported import open_exported

        complete_exported(config, open_exported(file, None, config.name), backend)
    elif found is Format.TORCHSCRIPT:
        from backend_pytorch.torchscript import open_torchscript

        program = open_torchscript(file, "cpu", config.name, optimized=True)
        raise no_types(config, found.value, program)
    elif found is Format.AOTI:
        from backend_pytorch.aoti import open_aoti

        raise no_types(config, found.value, open_aoti(file, None, config.name, 1))
    else:
        raise is_checkpoint(file, config.name)


def no_types(config: ModelConfig, what: str, program: Program | None) -> CoreError:
    """Return the error for a file without datatypes whose configuration is not complete."""
    names = ""
    if program is not None and program.takes is not None:
        names = f"its inputs are {_listed(program.takes)}"
        if program.gives is not None:
            names += f", its outputs {_listed(program.gives)}"
        names += "; "
    return invalid(
        f"unable to load model '{config.name}': {what} tells neither datatypes nor shapes, and "
        f"config.pbtxt does not describe every input and output; {names}write "
        "input [ { name: … data_type: … dims: … } ] and output, or export the model "
        "with torch.export.save, whose file tells them"
    )


def _listed(ports: Sequence[Port]) -> str:
    return ", ".join("/".join((port.name, *port.aliases)) for port in ports) or "none"


def complete_exported(config: ModelConfig, program: Program, backend: Backend) -> None:
    """Fill in what a configuration lacks from an exported program; raises the errors of `complete`."""
    takes, gives = program.takes or (), program.gives or ()
    _complete_batching(config, program, backend)
    reserved_inputs, reserved_outputs = tensors_of_the_server(config)
    _complete_tensors(config, config.input, takes, reserved_inputs, config_inputs, "input")
    _complete_tensors(config, config.output, gives, reserved_outputs, config_outputs, "output")


def _complete_batching(config: ModelConfig, program: Program, backend: Backend) -> None:
    """If every input and output has a first dimension of any size, set max_batch_size and the scheduler.

    A max_batch_size above 0 stays. One of 0 stays if the dims of an entry include the batch dimension.
    Raises CoreError(INVALID) if the program cannot run batches of max_batch_size.
    """
    ports = [*(program.takes or ()), *(program.gives or ())]
    batches = all(port.dims and port.dims[0] == -1 for port in ports)
    if not batches:
        if config.max_batch_size:
            fixed = next(port for port in ports if not port.dims or port.dims[0] != -1)
            raise invalid(
                f"autofill failed for model '{config.name}': model does not support batching while "
                f"non-zero max_batch_size is specified; '{fixed.name}' was exported with shape "
                f"{list(fixed.dims or ())}: export it with a dynamic first dimension"
            )
        return
    if not config.max_batch_size and not _described_without_batch(config, ports):
        most = default_max_batch_size(backend, "pytorch")
        fill_max_batch_size(config, min(most, program.most_rows) if program.most_rows else most)
    if program.most_rows and config.max_batch_size > program.most_rows:
        raise invalid(
            f"model '{config.name}' was exported for at most {program.most_rows} rows, max_batch_size is "
            f"{config.max_batch_size}"
        )
    fill_scheduler(config)


def _described_without_batch(config: ModelConfig, ports: Sequence[Port]) -> bool:
    """Return whether an entry has as many dims as the file's tensor.

    If so, its dims include the first dimension, and the configuration does not batch.
    """
    known = {name: port for port in ports for name in (port.name, *port.aliases)}
    tensors: list[Any] = [*config.input, *config.output]
    return any(
        io.dims and io.name in known and len(io.dims) == len(known[io.name].dims or ())
        for io in tensors
    )


def _complete_tensors(
    config: ModelConfig,
    entries: Any,
    ports: Sequence[Port],
    reserved: set[str],
    names_of: Any,
    kind: str,
) -> None:
    """Fill in data_type and dims where the entries lack them.

    If there are no entries, first add one for each port that is not reserved.
    reserved   names of tensors that the server fills or takes
    names_of   function that returns all input or output names of a configuration
    Raises CoreError for an entry that the file does not have or whose type the protocol lacks.
    """
    if not entries:
        taken = places(sorted(reserved), ports, "output", config.name) if reserved else {}
        for index, port in enumerate(ports):
            if index not in taken.values():
                entries.add(name=port.name)
    found = places(names_of(config), ports, kind, config.name)
    for entry in entries:
        port = ports[found[entry.name]]
        if port.dtype is None:
            raise unsupported(
                f"model '{config.name}': '{port.name}' is of a type that cannot be sent to clients"
            )
        entry.data_type = entry.data_type or port.dtype.number
        if not entry.dims:
            dims = (port.dims or ())[1 if config.max_batch_size else 0 :]
            entry.dims.extend(dims or (1,))
            # The program has one element per row, without another dimension.
            if not dims and config.max_batch_size:
                entry.reshape.SetInParent()
