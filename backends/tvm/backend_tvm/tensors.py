"""The parameters and results of a function with core's datatypes.

reading ─► [Ports] ─► complete, check, instance.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from core import dtypes
from core.dtypes import DataType

_DTYPES = {str(each.numpy): each for each in dtypes.ALL if each not in (dtypes.BYTES, dtypes.BF16)}
CARRIED = tuple(each.name for each in _DTYPES.values())


@dataclass(frozen=True)
class Port:
    """One parameter or result.

    type      TVM's name of the datatype
    written   dimensions as TVM writes them: ("n", "n * 2", "4")
    """

    name: str
    type: str
    written: tuple[str, ...]

    @property
    def dtype(self) -> DataType | None:
        """Return the datatype; None for types that this backend does not carry."""
        return _DTYPES.get(self.type)

    @property
    def dims(self) -> tuple[int, ...]:
        """Return the dimensions: -1 for any size; () for a scalar."""
        return tuple(int(each) if each.isdecimal() else -1 for each in self.written)


@dataclass(frozen=True)
class Ports:
    """The parameters and results of a function by name, in order.

    outputs   None if the file does not have them: a run shows them
    """

    inputs: dict[str, Port]
    outputs: dict[str, Port] | None

    @property
    def all(self) -> list[Port]:
        return [*self.inputs.values(), *(self.outputs or {}).values()]

    @property
    def batches(self) -> bool:
        """Return whether all tensors begin with the same variable, and have it only there: the batch."""
        firsts = {port.written[:1] for port in self.all}
        first = "".join(firsts.pop()) if len(firsts) == 1 and self.outputs else ""
        others = " ".join(each for port in self.all for each in port.written[1:])
        return first.isidentifier() and first not in re.findall(r"\w+", others)


def named(names: Iterable[str], types: Iterable[tuple[str, tuple[str, ...]]]) -> dict[str, Port]:
    """Return ports of these names, datatypes and dimensions."""
    return {name: Port(name, dtype, dims) for name, (dtype, dims) in zip(names, types, strict=True)}
