"""Complete a configuration from the model file.

config.pbtxt ─► fill ─► [complete] ─► normalise ─► validate.  The rules are those of Triton's OpenVINO
backend. In addition, dims keep the fixed sizes of the file beside dynamic ones.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import openvino as ov

from backend_openvino.check import unexpected, unservable
from backend_openvino.reading import model_file, read_model
from backend_openvino.settings import settings_of
from backend_openvino.tensors import Port, Ports, ports_of
from core.backend import Backend
from core.completion import (
    default_max_batch_size,
    fill_max_batch_size,
    fill_scheduler,
    is_described,
    tensors_of_the_server,
)
from core.config import ModelConfig
from core.errors import invalid

logger = logging.getLogger("core")


def complete(config: ModelConfig, path: Path, backend: Backend) -> None:
    """Fill in inputs, outputs, max_batch_size and dynamic_batching, in place.

    path   the version's folder
    If every input and output is described, only dynamic_batching is added: if max_batch_size is above 1, no
    scheduler is set, and the file's layouts name a batch.
    Raises CoreError if the file cannot be read, or if an entry does not fit it.
    """
    described = is_described(config)
    if described and (config.max_batch_size <= 1 or config.WhichOneof("scheduling_choice")):
        return
    runtime = ov.Core()
    if extension := settings_of(config).extension:
        add_extension(runtime, extension, config.name)
    ports = ports_of(read_model(runtime, model_file(config, path), config.name))
    complete_from(ports, config, backend)


def complete_from(ports: Ports, config: ModelConfig, backend: Backend) -> None:
    """Fill in what a configuration lacks; raises the errors of `complete` about entries."""
    if is_described(config):
        if _batches(ports):
            fill_scheduler(config)
        return
    _complete_batching(config, ports, backend)
    reserved_inputs, reserved_outputs = tensors_of_the_server(config)
    _complete_tensors(config, config.input, ports.input_list, "input", reserved_inputs)
    _complete_tensors(config, config.output, ports.output_list, "output", reserved_outputs)


def add_extension(runtime: Any, path: str, model: str) -> None:
    """Load a library of custom operators. Raises CoreError(INVALID) with the reason."""
    try:
        runtime.add_extension(path)
    except Exception as error:
        raise invalid(
            f"model '{model}': the library of parameter 'CPU_EXTENSION_PATH', '{path}', cannot be "
            f"loaded: {str(error).strip().splitlines()[-1]}; give an absolute path"
        ) from error


def _batches(ports: Ports) -> bool:
    """Return whether every tensor has a layout with a batch. A dynamic dimension alone may mean anything."""
    return all(port.has_batch for port in (*ports.input_list, *ports.output_list))


def _complete_batching(config: ModelConfig, ports: Ports, backend: Backend) -> None:
    if not _batches(ports):
        if config.max_batch_size:
            logger.warning(
                "model layout for model %s does not support batching while non-zero max_batch_size is "
                "specified",
                config.name,
            )
        return
    if not config.max_batch_size:
        fill_max_batch_size(config, max(1, default_max_batch_size(backend, "openvino")))
    fill_scheduler(config)


def _complete_tensors(
    config: ModelConfig, entries: Any, ports: tuple[Port, ...], kind: str, reserved: Iterable[str]
) -> None:
    """Fill in data_type and dims where the entries lack them.

    If there are no entries, first add one for each port that is not reserved.
    reserved   names of tensors that the server fills or takes
    Raises CoreError for an entry that the file does not have, whose type the protocol lacks, or whose number
    of dimensions is unknown.
    """
    if not entries:
        for port in ports:
            if not set(port.names) & set(reserved):
                entries.add(name=port.names[0])
    by_name = {name: port for port in ports for name in port.names}
    for entry in entries:
        if (found := by_name.get(entry.name)) is None:
            raise unexpected(entry.name, by_name, kind)
        if found.dtype is None:
            raise unservable(config.name, found)
        entry.data_type = entry.data_type or found.dtype.number
        if not entry.dims:
            if found.dims is None:
                raise invalid(
                    f"model '{config.name}': the file leaves open how many dimensions {kind} "
                    f"'{entry.name}' has; write its dims into config.pbtxt"
                )
            entry.dims.extend(found.dims[1 if config.max_batch_size else 0 :] or (1,))
