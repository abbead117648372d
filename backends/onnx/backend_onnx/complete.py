"""Complete a configuration from the model file.

config.pbtxt ─► fill ─► [complete] ─► normalise ─► validate.  The rules are those of Triton's ONNX
Runtime backend. In addition, an entry without data_type or dims gets them.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import onnxruntime as ort

from backend_onnx.check import unexpected, unservable
from backend_onnx.graph import Graph, TensorInfo, graph_of
from backend_onnx.options import session_options, shares_threads
from backend_onnx.providers import CPU
from backend_onnx.session import model_file, open_session
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


def complete(config: ModelConfig, path: Path, backend: Backend) -> None:
    """Fill in inputs, outputs, max_batch_size and dynamic_batching, in place.

    path   the version's folder
    Does nothing if every input and output is described: a complete configuration stays unchanged.
    Raises CoreError if the file cannot be loaded, if an entry does not fit it, or if the model cannot batch
    and max_batch_size is set.
    """
    if is_described(config):
        return
    complete_from(_read_graph(config, path, backend), config, backend)


def complete_from(graph: Graph, config: ModelConfig, backend: Backend) -> None:
    """Fill in what a configuration lacks from a graph; raises the errors of `complete` about entries."""
    _complete_batching(config, graph, backend)
    reserved_inputs, reserved_outputs = tensors_of_the_server(config)
    optional = graph.overridable.keys()
    inputs = {**graph.inputs, **graph.overridable}
    _complete_tensors(config, config.input, inputs, {*reserved_inputs, *optional}, "input")
    _complete_tensors(config, config.output, graph.outputs, reserved_outputs, "output")


def _read_graph(config: ModelConfig, path: Path, backend: Backend) -> Graph:
    """Return the graph of the file, from a session on the CPU without optimisation."""
    options = session_options(config, path, global_threads=shares_threads(backend.config))
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.add_session_config_entry("session.disable_prepacking", "1")
    return graph_of(open_session(model_file(config, path), options, [(CPU, {})], config.name))


def _complete_batching(config: ModelConfig, graph: Graph, backend: Backend) -> None:
    if not graph.batches:
        if config.max_batch_size:
            raise invalid(
                f"autofill failed for model '{config.name}': model does not support batching while "
                f"non-zero max_batch_size is specified; {_fixed(graph)}"
            )
        return
    if not config.max_batch_size and not _described_without_batch(config, graph):
        fill_max_batch_size(config, default_max_batch_size(backend, "onnxruntime"))
    fill_scheduler(config)


def _fixed(graph: Graph) -> str:
    """Return a text that names the first tensor without a dynamic first dimension."""
    for kind, infos in (("input", graph.inputs), ("output", graph.outputs)):
        for info in infos.values():
            if not info.batches:
                return (
                    f"{kind} '{info.name}' has shape {list(info.dims)}, its first dimension would "
                    "have to be of any size"
                )
    raise AssertionError("the graph batches")


def _described_without_batch(config: ModelConfig, graph: Graph) -> bool:
    """Return whether an entry has as many dims as the file's tensor.

    If so, its dims include the first dimension, and the configuration does not batch.
    """
    known = {**graph.inputs, **graph.outputs}
    tensors: list[Any] = [*config.input, *config.output]
    return any(
        io.dims and io.name in known and len(io.dims) == len(known[io.name].dims) for io in tensors
    )


def _complete_tensors(
    config: ModelConfig,
    entries: Any,
    infos: dict[str, TensorInfo],
    reserved: Iterable[str],
    kind: str,
) -> None:
    """Fill in data_type and dims where the entries lack them.

    If there are no entries, first add one for each tensor of `infos` that is not reserved.
    reserved   names of tensors that the server fills or takes, and of optional inputs
    Raises CoreError(INVALID) for an entry that the file does not have, and CoreError(UNSUPPORTED) for a
    datatype that the protocol does not have.
    """
    if not entries:
        for name in infos:
            if name not in reserved:
                entries.add(name=name)
    for entry in entries:
        if (info := infos.get(entry.name)) is None:
            raise unexpected(entry.name, infos, kind)
        if info.dtype is None:
            raise unservable(config.name, info)
        entry.data_type = entry.data_type or info.dtype.number
        if not entry.dims:
            dims = info.dims[1 if config.max_batch_size else 0 :]
            entry.dims.extend(dims or (1,))
            if not dims and config.max_batch_size:  # a scalar is [1] to clients only
                entry.reshape.SetInParent()
