"""The inputs and outputs of a pipeline with core's datatypes.

definition ─► [Ports] ─► complete, check, instance.
"""

from __future__ import annotations

from dataclasses import dataclass

from core import dtypes
from core.dtypes import DataType

DTYPES: dict[int, DataType] = {
    0: dtypes.UINT8,
    1: dtypes.UINT16,
    2: dtypes.UINT32,
    3: dtypes.UINT64,
    4: dtypes.INT8,
    5: dtypes.INT16,
    6: dtypes.INT32,
    7: dtypes.INT64,
    8: dtypes.FP16,
    9: dtypes.FP32,
    10: dtypes.FP64,
    11: dtypes.BOOL,
}
"""DALI's number of a datatype → core's."""


@dataclass(frozen=True)
class Port:
    """One input or output. A sample is a row without the batch.

    dtype   None if the pipeline does not say it
    ndim    dimensions of a sample; None if the pipeline does not say it
    """

    name: str
    dtype: DataType | None
    ndim: int | None


@dataclass(frozen=True)
class Ports:
    """The inputs and outputs of a pipeline by name, in its order."""

    inputs: dict[str, Port]
    outputs: dict[str, Port]
