"""Datatypes and shapes of the arguments of an AOTInductor package, from the checks in its source.

package ─► [arguments_of] ─► AotiProgram.  Compiled code trusts its arguments: with another shape, it reads
beyond their memory. Its own checks are off. If they were on, they would refuse a single row, because the
compiler assumes at least 2 for a dynamic dimension, although the code works with 1. `Argument.refusal` checks
instead.
"""

from __future__ import annotations

import re
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from backend_pytorch.program import datatype_of
from core.dtypes import DataType

_CHECK = re.compile(
    r"static void check_input_(\d+)\(.*?\n\}\n(?=\s*AOTI_NOINLINE|\s*static|\s*void|\s*\S+)",
    re.DOTALL,
)
_DTYPE = re.compile(r"_expected_dtype = aoti_torch_dtype_(\w+)\(\)")
_FIXED = re.compile(r"if \((\d+) != \w+_size\[(\d+)\]\)")
_LEAST = re.compile(r"if \(\w+_size\[(\d+)\] < (\d+)\)")
_MOST = re.compile(r"if \(\w+_size\[(\d+)\] > (\d+)\)")
_ASSUMED = 2  # minimum that the compiler assumes for every dynamic dimension


@dataclass(frozen=True)
class Argument:
    """One argument.

    dtype         None if unknown
    dims          -1 for a dynamic size
    least, most   index of a dimension → bounds of its size
    """

    dtype: DataType | None
    dims: tuple[int, ...]
    least: dict[int, int]
    most: dict[int, int]

    def refusal(self, tensor: Any) -> str:
        """Return why a tensor cannot be this argument, "" if it can."""
        shape = tuple(tensor.shape)
        if len(shape) != len(self.dims):
            return f"shape {list(shape)}, compiled for {list(self.dims)}"
        for place, (size, expected) in enumerate(zip(shape, self.dims, strict=True)):
            if expected != -1 and size != expected:
                return f"shape {list(shape)}, compiled for {list(self.dims)}"
            if size < self.least.get(place, 0) or size > self.most.get(place, size):
                return (
                    f"size {size} in dimension {place}, compiled for {self.least.get(place, 0)} to "
                    f"{self.most.get(place, 'any')}"
                )
        return ""


def arguments_of(path: Path) -> list[Argument] | None:
    """Return the arguments of a package, in order; None if its source is missing or of an unknown form."""
    with zipfile.ZipFile(path) as archive:
        names = [name for name in archive.namelist() if name.endswith(".wrapper.cpp")]
        if len(names) != 1:
            return None
        source = archive.read(names[0]).decode(errors="replace")
    found = [_argument(match[0]) for match in _CHECK.finditer(source)]
    return found or None


def _argument(check: str) -> Argument:
    dtype = _DTYPE.search(check)
    sizes = {int(place): int(size) for size, place in _FIXED.findall(check)}
    least = {int(place): int(size) for place, size in _LEAST.findall(check)}
    most = {int(place): int(size) for place, size in _MOST.findall(check)}
    places = {*sizes, *least, *most}
    dims = tuple(sizes.get(place, -1) for place in range(max(places, default=-1) + 1))
    return Argument(
        datatype_of(dtype[1]) if dtype else None,
        dims,
        {place: size for place, size in least.items() if size != _ASSUMED},
        most,
    )
