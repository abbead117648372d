"""Complete a configuration from the pipeline.

config.pbtxt ─► fill ─► [complete] ─► normalise ─► validate.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from backend_dali.check import dims_of, unexpected
from backend_dali.reading import ReadModel, read_model
from backend_dali.settings import settings_of
from backend_dali.tensors import Port
from core.backend import Backend
from core.completion import fill_scheduler, is_described
from core.config import ModelConfig
from core.errors import invalid


def complete(config: ModelConfig, path: Path, backend: Backend) -> None:
    """Fill in inputs, outputs, max_batch_size and dynamic_batching, in place.

    path   the version's folder
    Raises CoreError if the pipeline cannot be read, does not say a datatype or number of dims that the
    configuration lacks, or if an entry does not fit it.
    """
    described = is_described(config) and config.max_batch_size > 0
    if described and (config.max_batch_size == 1 or config.WhichOneof("scheduling_choice")):
        return
    complete_from(read_model(config, path, settings_of(config)), config)


def complete_from(read: ReadModel, config: ModelConfig) -> None:
    """Fill in what a configuration lacks; raises the errors of `complete` about entries."""
    if config.max_batch_size < 1:
        config.max_batch_size = read.batch_size
    fill_scheduler(config)
    if is_described(config):
        return
    _complete_tensors(config, config.input, read.ports.inputs, "input")
    _complete_tensors(config, config.output, read.ports.outputs, "output")


def _complete_tensors(
    config: ModelConfig, entries: Any, ports: Mapping[str, Port], kind: str
) -> None:
    """Fill in data_type and dims where the entries lack them. If there are none, add one for each port."""
    if not entries:
        for name in ports:
            entries.add(name=name)
    for entry in entries:
        if (port := ports.get(entry.name)) is None:
            raise unexpected(entry.name, ports, kind)
        if not entry.data_type:
            if port.dtype is None:
                raise _unknown(config, port, kind, "data_type")
            entry.data_type = port.dtype.number
        if not entry.dims:
            if (dims := dims_of(port)) is None:
                raise _unknown(config, port, kind, "dims")
            entry.dims.extend(dims)


def _unknown(config: ModelConfig, port: Port, kind: str, field: str) -> Exception:
    where = (
        "dtype and ndim to external_source"
        if kind == "input"
        else "output_dtype and output_ndim to pipeline_def"
    )
    return invalid(
        f"model '{config.name}': the pipeline does not say the {field} of {kind} '{port.name}'; give "
        f"{where}, or {field} in config.pbtxt"
    )
