"""Read a serialized pipeline without DALI: inputs, outputs, batch size, and what runs on a GPU.

file, serializing ─► [definition] ─► reading.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from google.protobuf.message import DecodeError

from backend_dali.messages import Pipeline
from backend_dali.tensors import DTYPES, Port, Ports

_SOURCE = "ExternalSource"
_ON_GPU = ("gpu", "mixed")
_MOST_DIMS, _MOST_ROWS = 64, (1 << 31) - 1


@dataclass(frozen=True)
class Definition:
    """What a serialized pipeline says.

    batch_size   rows of a batch that it was written for
    on_gpu       operators that run on a GPU; () if the pipeline needs none
    """

    ports: Ports
    batch_size: int
    on_gpu: tuple[str, ...]


def read_definition(content: bytes) -> Definition:
    """Return what a serialized pipeline says. Raises ValueError with the reason if it is none."""
    try:
        message = Pipeline.FromString(content)
    except DecodeError:
        raise ValueError("it is damaged, or no serialized pipeline") from None
    if not message.operators or not message.outputs or not message.batch_size:
        raise ValueError(
            "it has no operators, outputs or batch size, so it is no serialized pipeline"
        )
    if not 1 <= message.batch_size <= _MOST_ROWS:
        raise ValueError(
            f"its batch size is {message.batch_size}, expected a number from 1 to {_MOST_ROWS}"
        )
    inputs = {}
    for each in message.operators:
        if each.schema == _SOURCE:
            inputs[each.name] = _input(each)
    outputs = {each.name: _output(each) for each in message.outputs}
    if len(outputs) < len(message.outputs):
        names = ", ".join(each.name for each in message.outputs)
        raise ValueError(f"two of its outputs have one name ({names}): return each once")
    on_gpu = dict.fromkeys(_shown(each) for each in message.operators if _runs_on_gpu(each))
    return Definition(Ports(inputs, outputs), message.batch_size, tuple(on_gpu))


def _input(operator: Any) -> Port:
    given = {each.name: each for each in operator.arguments}
    dtype = list(given["dtype"].ints) if "dtype" in given else []
    ndim = list(given["ndim"].ints) if "ndim" in given else []
    layout = "".join(given["layout"].strings) if "layout" in given else ""
    rank = _checked(operator.name, ndim[0] if ndim else len(layout) or None)
    return Port(operator.name, DTYPES.get(dtype[0]) if dtype else None, rank)


def _output(tensor: Any) -> Port:
    dtype = DTYPES.get(tensor.dtype) if tensor.HasField("dtype") else None
    ndim = tensor.ndim if tensor.HasField("ndim") and tensor.ndim >= 0 else None
    return Port(tensor.name, dtype, _checked(tensor.name, ndim))


def _checked(name: str, rank: int | None) -> int | None:
    """Return a number of dims. Raises ValueError if no tensor has as many."""
    if rank is not None and not 0 <= rank <= _MOST_DIMS:
        raise ValueError(f"'{name}' has {rank} dims, expected a number from 0 to {_MOST_DIMS}")
    return rank


def _runs_on_gpu(operator: Any) -> bool:
    return any(
        each.name == "device" and set(each.strings) & set(_ON_GPU) for each in operator.arguments
    )


def _shown(operator: Any) -> str:
    """Return the name of an operator for errors: as users write it, if the pipeline has that."""
    names = {each.name: "".join(each.strings) for each in operator.arguments}
    return names.get("_display_name") or str(operator.schema)
