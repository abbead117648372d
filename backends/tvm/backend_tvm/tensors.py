"""The parameters and results of a function with core's datatypes.

reading ─► [Ports] ─► complete, check, instance.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from core import dtypes
from core.file_signature import FileSignature, FileTensor

_DTYPES = {str(each.numpy): each for each in dtypes.ALL if each not in (dtypes.BYTES, dtypes.BF16)}


@dataclass(frozen=True)
class Port(FileTensor):
    """One parameter or result.

    type      TVM's name of the datatype
    written   dimensions as TVM writes them: ("n", "n * 2", "4")
    """

    written: tuple[str, ...]
    carried = _DTYPES


@dataclass(frozen=True)
class Ports(FileSignature[Port]):
    """The parameters and results of a function by name, in order."""

    @property
    def batches(self) -> bool:
        """Return whether all tensors begin with the same variable, and have it only there: the batch."""
        firsts = {port.written[:1] for port in self.all}
        first = "".join(firsts.pop()) if len(firsts) == 1 and self.outputs else ""
        others = " ".join(each for port in self.all for each in port.written[1:])
        return first.isidentifier() and first not in re.findall(r"\w+", others)


def named(names: Iterable[str], types: Iterable[tuple[str, tuple[str, ...]]]) -> dict[str, Port]:
    """Return ports of these names, datatypes and dimensions."""
    return {
        name: Port(name, dtype, sizes_of(written), written)
        for name, (dtype, written) in zip(names, types, strict=True)
    }


def sizes_of(written: Iterable[str]) -> tuple[int, ...]:
    """Return dimensions that TVM has written as numbers: -1 for any size."""
    return tuple(int(each) if each.isdecimal() else -1 for each in written)
