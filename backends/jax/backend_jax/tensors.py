"""The arguments and results of a function with core's datatypes.

reading ─► [Ports] ─► complete, check, instance.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from core import dtypes
from core.file_signature import FileSignature, FileTensor

_DTYPES = {str(each.numpy): each for each in dtypes.ALL if each not in (dtypes.BYTES, dtypes.BF16)}
_DTYPES["bfloat16"] = dtypes.BF16


@dataclass(frozen=True)
class Port(FileTensor):
    """One argument or result.

    type       name of JAX's datatype
    written    dimensions as JAX writes them: ("b", "2*n", "4")
    """

    written: tuple[str, ...]
    carried = _DTYPES


@dataclass(frozen=True)
class Ports(FileSignature[Port]):
    """The arguments and results of a function by name, in the order of the file."""

    @property
    def batches(self) -> bool:
        """Return whether all tensors begin with the same variable, and have it only there: the batch."""
        firsts = {port.written[:1] for port in self.all}
        first = "".join(firsts.pop()) if len(firsts) == 1 else ""
        others = " ".join(each for port in self.all for each in port.written[1:])
        return first.isidentifier() and first not in re.findall(r"\w+", others)
