"""Read a GraphDef: its placeholders, and the tensors that nothing else takes.

model.graphdef ─► [graph_def] ─► Graph, Ports.  Imports TensorFlow.
"""

from __future__ import annotations

import gc
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from backend_tensorflow.files import text_of, unreadable
from backend_tensorflow.framework import v1
from backend_tensorflow.tensors import TYPES, Port, Ports, port_of
from core.completion import tensors_of_the_server
from core.config import ModelConfig
from core.errors import invalid
from core.model_file import check_readable

_PLACEHOLDERS = ("Placeholder", "PlaceholderV2")
_NO_RESULTS = ("Const", "NoOp", *_PLACEHOLDERS)


def read_graph(path: Path, model: str, place: str | None = None) -> Any:
    """Return a tf.Graph with the operators of a file. Raises CoreError(INTERNAL) if it cannot be read.

    place   device of operators that name none, such as "/device:GPU:1"
    """
    check_readable(path, model)
    message, graph = v1.GraphDef(), v1.Graph()
    try:
        message.ParseFromString(path.read_bytes())
        with graph.as_default(), graph.device(place):
            v1.import_graph_def(message, name="")
    except Exception as error:
        raise unreadable(
            path, model, f"TensorFlow cannot read it; copy or export it again ({text_of(error)})"
        ) from error
    if not graph.get_operations():
        raise unreadable(path, model, "it has no operators; copy or export it again")
    return graph


def read_graph_ports(path: Path, config: ModelConfig) -> Ports:
    """Return `ports_of` the graph of a file, and free the graph. Raises CoreError."""
    found = ports_of(read_graph(path, config.name), config)
    gc.collect()  # a graph, which holds the weights, is in a reference cycle with its operators
    return found


def ports_of(graph: Any, config: ModelConfig) -> Ports:
    """Return the outputs of a configuration and the placeholders that they need, with other given inputs.

    Without outputs in the configuration, they are the tensors that depend on a placeholder, and that no
    operator takes. Names are those of operators, or of tensors: "scores" is "scores:0".
    Raises CoreError(INVALID) for a name that the graph does not have.
    """
    given, kept = tensors_of_the_server(config)
    inputs = {io.name: _tensor(graph, io.name, config) for io in config.input}
    inputs |= {name: _tensor(graph, name, config) for name in sorted(given)}
    outputs = {io.name: _tensor(graph, io.name, config) for io in config.output}
    outputs |= {name: _tensor(graph, name, config) for name in sorted(kept)}
    if not config.output:
        outputs |= _results(graph)
    fed = {tensor.op.name for tensor in inputs.values()}
    for name in _needed(outputs.values(), fed):
        inputs.setdefault(name, graph.get_tensor_by_name(f"{name}:0"))
    return Ports(_ports(inputs), _ports(outputs))


def _tensor(graph: Any, name: str, config: ModelConfig) -> Any:
    try:
        return graph.get_tensor_by_name(name if ":" in name else f"{name}:0")
    except (KeyError, ValueError) as error:
        there = [each.name for each in graph.get_operations() if each.outputs]
        shown = ", ".join([*there[:3], "…", *there[-3:]] if len(there) > 7 else there)
        raise invalid(
            f"model '{config.name}': the graph has no tensor '{name}'; it has: {shown}; change the name in "
            "config.pbtxt"
        ) from error


def _results(graph: Any) -> dict[str, Any]:
    """Return the tensors that depend on a placeholder, and that no operator takes."""
    found = {}
    for operator in graph.get_operations():
        results = [each for each in operator.outputs if not each.consumers()]
        if len(results) != len(operator.outputs) or operator.type in _NO_RESULTS or not results:
            continue
        if not _needed(results, set()):
            continue
        for i, each in enumerate(results):
            found[f"{operator.name}:{i}" if i else operator.name] = each
    return found


def _needed(tensors: Iterable[Any], fed: set[str]) -> list[str]:
    """Return the names of the placeholders on which tensors depend, sorted; none of `fed` or behind it."""
    waiting = [tensor.op for tensor in tensors]
    seen, found = {each.name for each in waiting}, []
    while waiting:
        operator = waiting.pop()
        if operator.name in fed:
            continue
        if operator.type in _PLACEHOLDERS:
            found.append(operator.name)
        for each in [*(tensor.op for tensor in operator.inputs), *operator.control_inputs]:
            if each.name not in seen:
                seen.add(each.name)
                waiting.append(each)
    return sorted(found)


def _ports(tensors: dict[str, Any]) -> dict[str, Port]:
    found = {}
    for name in sorted(tensors):
        tensor = tensors[name]
        dims = tensor.shape.rank is not None and tuple(
            -1 if each is None else each for each in tensor.shape.as_list()
        )
        type_ = TYPES.get(tensor.dtype.base_dtype.as_datatype_enum, str(tensor.dtype))
        found[name] = port_of(name, tensor.name, type_, None if dims is False else dims)
    return found
