"""Read the signatures of a SavedModel, without TensorFlow.

saved_model.pb ─► [saved_model] ─► Signature: tags, key, Ports.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from backend_tensorflow.files import SAVED_MODEL_FILE, unreadable
from backend_tensorflow.messages import SavedModel
from backend_tensorflow.settings import Settings
from backend_tensorflow.tensors import TYPES, Port, Ports, port_of
from core.errors import invalid
from core.model_file import check_readable

_DEFAULT_TAGS, _DEFAULT_SIGNATURE = ("serve",), "serving_default"
_HIDDEN = "__saved_model_"  # signatures of operators that run at a load, and of training


@dataclass(frozen=True)
class Signature:
    """One signature of one graph.

    tags     of the graph
    ports    of the signature
    method   for which it was exported, such as "tensorflow/serving/classify"; may be ""
    """

    tags: tuple[str, ...]
    ports: Ports
    method: str


def read_signature(folder: Path, settings: Settings, model: str) -> Signature:
    """Return the signature that a model's settings name.

    Raises CoreError: INTERNAL if saved_model.pb cannot be read, INVALID with those that there are if there is
    no such graph or signature, or if the settings name none of several.
    """
    graph = _graph(_read(folder / SAVED_MODEL_FILE, model), settings.tags, model)
    there = {key: each for key, each in graph.signature_def.items() if not key.startswith(_HIDDEN)}
    key = settings.signature or _DEFAULT_SIGNATURE
    if key not in there and not settings.signature and len(there) == 1:
        key = next(iter(there))
    if key not in there:
        asked = f"no signature '{key}'" if settings.signature else f"{len(there)} signatures"
        raise invalid(
            f"model '{model}': the SavedModel has {asked}; it has: {', '.join(sorted(there)) or 'none'}; "
            "name one with the parameter 'TF_SIGNATURE_DEF' in config.pbtxt"
        )
    found = there[key]
    ports = Ports(_ports(found.inputs), _ports(found.outputs))
    return Signature(tuple(graph.meta_info_def.tags), ports, found.method_name)


def _read(path: Path, model: str) -> Any:
    check_readable(path, model)
    message = SavedModel()
    try:
        message.ParseFromString(path.read_bytes())
    except (
        Exception
    ) as error:  # the parser's own class of errors differs between its implementations
        raise unreadable(
            path, model, f"it is damaged, or no SavedModel; copy or export it again ({error})"
        ) from error
    if not message.meta_graphs:
        raise unreadable(path, model, "it has no graph; copy or export it again")
    return message


def _graph(message: Any, tags: tuple[str, ...], model: str) -> Any:
    """Return the graph with these tags; without tags, the one with the tag "serve", or the only one."""
    graphs = {frozenset(each.meta_info_def.tags): each for each in message.meta_graphs}
    if not tags and len(graphs) == 1:
        return message.meta_graphs[0]
    wanted = tags or _DEFAULT_TAGS
    if (found := graphs.get(frozenset(wanted))) is None:
        there = "; ".join(sorted(", ".join(sorted(each)) or "no tag" for each in graphs))
        raise invalid(
            f"model '{model}': the SavedModel has no graph with exactly the tags {', '.join(wanted)}; it has "
            f"graphs with: {there}; name the tags of one with the parameter 'TF_GRAPH_TAG' in config.pbtxt"
        )
    return found


def _ports(entries: Mapping[str, Any]) -> dict[str, Port]:
    """Return the ports in the order of their names; the components of ragged and sparse tensors apart."""
    return {port.name: port for name in sorted(entries) for port in _parts(name, entries[name])}


def _parts(name: str, info: Any) -> Iterator[Port]:
    """Yield the port of a tensor, or one for each component, with TensorFlow's names of inputs."""
    kind = info.WhichOneof("encoding")
    if kind == "composite_tensor":
        for i, each in enumerate(info.composite_tensor.components):
            given = f"{name}_{i}" if i else name
            yield port_of(given, each.name, _type(each.dtype), _dims(each.tensor_shape), part=True)
    elif kind == "coo_sparse":
        sparse, dims = info.coo_sparse, _dims(info.tensor_shape)
        rank = -1 if dims is None else len(dims)
        values = sparse.values_tensor_name, _type(info.dtype), (-1,)
        yield port_of(f"{name}_indices", sparse.indices_tensor_name, "int64", (-1, rank), part=True)
        yield port_of(f"{name}_values", *values, part=True)
        shape = sparse.dense_shape_tensor_name, "int64", (rank,)
        yield port_of(f"{name}_dense_shape", *shape, part=True)
    else:
        yield port_of(name, info.name, _type(info.dtype), _dims(info.tensor_shape))


def _type(number: int) -> str:
    # A reference, of a variable of TensorFlow 1, has the number of its datatype plus 100.
    return TYPES.get(number % 100, f"type {number}")


def _dims(shape: Any) -> tuple[int, ...] | None:
    return None if shape.unknown_rank else tuple(each.size for each in shape.dim)
