"""The inputs and outputs of a model with core's datatypes.

program_desc, pir ─► [Ports] ─► complete, check, instance.
"""

from __future__ import annotations

from dataclasses import dataclass

from core import dtypes
from core.file_signature import FileSignature, FileTensor

# Number of a datatype in .pdmodel and .pdiparams files (VarType.Type in framework.proto) → its name.
TYPES = {
    0: "bool",
    1: "int16",
    2: "int32",
    3: "int64",
    4: "float16",
    5: "float32",
    6: "float64",
    20: "uint8",
    21: "int8",
    22: "bfloat16",
    23: "complex64",
    24: "complex128",
    25: "string",
    32: "float8_e4m3fn",
    33: "float8_e5m2",
    36: "uint16",
    37: "uint32",
    38: "uint64",
}
# Paddle Inference takes and returns arrays of these only.
_CARRIED = (
    dtypes.BOOL,
    dtypes.UINT8,
    dtypes.INT8,
    dtypes.INT32,
    dtypes.INT64,
    dtypes.FP16,
    dtypes.FP32,
    dtypes.FP64,
)


@dataclass(frozen=True)
class Port(FileTensor):
    """One input or output.

    type   a name in TYPES
    """

    carried = {str(each.numpy): each for each in _CARRIED}
    advice = "which Paddle Inference neither takes nor returns; export the model with one of"


class Ports(FileSignature[Port]):
    """The inputs and outputs of a model by name, in the order of the file."""


@dataclass(frozen=True)
class Weight:
    """One tensor of the weights.

    type   a name in TYPES
    """

    type: str
    dims: tuple[int, ...]


@dataclass(frozen=True)
class Program:
    """What the file of a program says.

    ports     inputs and outputs
    weights   the weights that it takes from the file beside it, by name
    """

    ports: Ports
    weights: dict[str, Weight]
