"""The arguments and results of a function with core's datatypes.

reading ─► [Ports] ─► complete, check, instance.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from core import dtypes
from core.dtypes import DataType

_DTYPES = {str(each.numpy): each for each in dtypes.ALL if each not in (dtypes.BYTES, dtypes.BF16)}
_DTYPES["bfloat16"] = dtypes.BF16


@dataclass(frozen=True)
class Port:
    """One argument or result.

    type       name of JAX's datatype
    dims       -1 for any size; () for a scalar
    written    dimensions as JAX writes them: ("b", "2*n", "4")
    """

    name: str
    type: str
    dims: tuple[int, ...]
    written: tuple[str, ...]

    @property
    def dtype(self) -> DataType | None:
        """Return the datatype; None for types that the protocol cannot carry."""
        return _DTYPES.get(self.type)


@dataclass(frozen=True)
class Ports:
    """The arguments and results of a function by name, in the order of the file."""

    inputs: dict[str, Port]
    outputs: dict[str, Port]

    @property
    def all(self) -> list[Port]:
        return [*self.inputs.values(), *self.outputs.values()]

    @property
    def batches(self) -> bool:
        """Return whether all tensors begin with the same variable, and have it only there: the batch."""
        firsts = {port.written[:1] for port in self.all}
        first = "".join(firsts.pop()) if len(firsts) == 1 else ""
        others = " ".join(each for port in self.all for each in port.written[1:])
        return first.isidentifier() and first not in re.findall(r"\w+", others)
