"""Complete a configuration from the model.

config.pbtxt ─► fill ─► [complete] ─► normalise ─► validate.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

from backend_tensorflow.check import ragged_tensors
from backend_tensorflow.files import model_files
from backend_tensorflow.installed import import_tensorflow
from backend_tensorflow.saved_model import read_signature
from backend_tensorflow.settings import METHOD, PREDICT, settings_of
from backend_tensorflow.tensors import Port, Ports
from core.backend import Backend
from core.completion import default_max_batch_size, fill_max_batch_size, is_described
from core.config import ModelConfig
from core.file_signature import is_complete

logger = logging.getLogger("core")


def complete(config: ModelConfig, path: Path, backend: Backend) -> None:
    """Fill in inputs, outputs, max_batch_size, dynamic_batching and the method of the signature, in place.

    path   the version's folder
    Raises CoreError if the model cannot be read, or if an entry does not fit it.
    """
    described = is_complete(config)
    found, is_saved_model = model_files(config, path)
    if is_saved_model:
        signature = read_signature(found, settings_of(config), config.name)
        _complete_method(config, signature.method)
    if not described:
        ports = signature.ports if is_saved_model else _graph_ports(found, config)
        complete_from(ports, config, backend)


def _complete_method(config: ModelConfig, method: str) -> None:
    """Add the parameter with the method, which metadata for clients of TensorFlow Serving have."""
    if method not in ("", PREDICT) and METHOD not in config.parameters:
        config.parameters[METHOD].string_value = method


def read_ports(config: ModelConfig, path: Path) -> Ports:
    """Return inputs and outputs of a version. A GraphDef needs TensorFlow. Raises CoreError."""
    found, is_saved_model = model_files(config, path)
    if is_saved_model:
        return read_signature(found, settings_of(config), config.name).ports
    return _graph_ports(found, config)


def _graph_ports(file: Path, config: ModelConfig) -> Ports:
    import_tensorflow(config.name)
    from backend_tensorflow.graph_def import read_graph_ports

    return read_graph_ports(file, config)


def complete_from(ports: Ports, config: ModelConfig, backend: Backend) -> None:
    """Fill in what a configuration lacks; raises the errors of `complete` about entries.

    Rows of scalars get dims [1] and an empty reshape.
    """
    lacks_batch = ports.batches and not (config.max_batch_size or is_described(config))
    if lacks_batch and ragged_tensors(config, ports):  # the dims of these never include the batch
        fill_max_batch_size(config, max(1, default_max_batch_size(backend, "tensorflow")))
    sides: list[tuple[Any, dict[str, Port]]]
    sides = [(config.input, ports.inputs), (config.output, ports.outputs)]
    before = [{io.name for io in entries if io.dims} for entries, _ in sides]
    ports.fill(config, backend, "tensorflow")
    for (entries, there), described in zip(sides, before, strict=True):
        for entry in entries:
            if entry.name not in described:
                _complete_shape(entry, there[entry.name], config)


def _complete_shape(entry: Any, port: Port, config: ModelConfig) -> None:
    if port.any_rank:
        logger.warning(
            "model '%s' does not say how many dimensions '%s' has; it is taken for a vector. "
            "Describe inputs and outputs in config.pbtxt for other shapes, and for batches",
            config.name,
            port.name,
        )
    elif config.max_batch_size and port.dims == (-1,):
        entry.reshape.SetInParent()
