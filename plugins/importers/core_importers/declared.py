"""Declared: one input or output for config.pbtxt, also in the form of the command line: x:FP32[-1,4]."""

from __future__ import annotations

import re
from typing import NamedTuple

from core.errors import invalid

DATATYPES = (
    "BOOL", "UINT8", "UINT16", "UINT32", "UINT64", "INT8", "INT16", "INT32", "INT64",
    "FP16", "BF16", "FP32", "FP64", "STRING",
)  # fmt: skip
_FORM = re.compile(r"(?P<name>[^:\[\]]+):(?P<type>[A-Za-z0-9]+)(\[(?P<dims>[-0-9, ]*)\])?")


class Declared(NamedTuple):
    """An input or output.

    datatype   word of config.pbtxt without TYPE_, such as FP32 or STRING
    dims       without the batch dimension; -1 for any size
    """

    name: str
    datatype: str
    dims: tuple[int, ...]
    optional: bool = False


def parsed(text: str) -> Declared:
    """Return the tensor of the form NAME:TYPE[DIMS]; without [DIMS] it has one element.

    Raises CoreError(INVALID) for another form or an unknown datatype.
    """
    found = _FORM.fullmatch(text.strip())
    datatype = found["type"].upper() if found else ""
    datatype = "STRING" if datatype == "BYTES" else datatype
    if found is None or datatype not in DATATYPES:
        raise invalid(
            f"'{text}' is no tensor; expected NAME:TYPE[DIMS], such as x:FP32[-1,4], with a TYPE of "
            f"{', '.join(DATATYPES)}"
        )
    try:
        dims = tuple(int(each) for each in (found["dims"] or "1").split(","))
    except ValueError:
        raise invalid(f"'{text}': [{found['dims']}] is no list of sizes such as [-1,4]") from None
    if any(size == 0 or size < -1 for size in dims):
        raise invalid(f"'{text}': a size is at least 1, or -1 for any size")
    return Declared(found["name"].strip(), datatype, dims)


def merged(found: list[Declared], wished: list[Declared]) -> list[Declared]:
    """Return the tensors of the source, each replaced by the wished one of its name, then the other wishes.

    found    those of the source, in its order
    wished   those of the command line
    """
    by_name = {each.name: each for each in wished}
    kept = [by_name.pop(each.name, each) for each in found]
    return [*kept, *by_name.values()]
