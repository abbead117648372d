"""Read what a compiled module says about its functions, without TVM and without running code of the file.

file ─► elf ─► [executable] ─► annotations ─► reading.

`export_library` puts the bytecode of the virtual machine into the library as data: a table of functions
with the names of their parameters, then constants. Among these are the texts for errors about arguments,
which hold the types of parameters, and of results whose shapes have variables.
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass, field

_MAGIC = struct.pack("<Q", 0xD225DE2F4214151E)  # of a Relax executable
_START = "ErrorContext(fn="
_CONTEXT = re.compile(re.escape(_START.encode()))
_PARAMETER = re.compile(r"param\[(\d{1,9})\], param=")
_PACKED = 0  # kind of a function that is called by its name, not one of the module
_MOST_BYTES = 1 << 20  # of a name or text
_LIBRARY = b"__tvm_ffi__library_bin"
_OLD = (b"__tvm_dev_mblob", b"__tvm_module_ctx", b"__tvm_main__", b"tvmgen_")


@dataclass
class Function:
    """A function of a module.

    parameters   names in order
    types        place of a parameter → its type, as TVM writes it
    result       type of the result as TVM writes it; "" if the file does not have it: all shapes are fixed
    """

    parameters: list[str]
    types: dict[int, str] = field(default_factory=dict)
    result: str = ""


def functions_of(content: memoryview) -> dict[str, Function]:
    """Return the functions that a client can call, by name, in the order of the file.

    Raises ValueError with the reason if there is no Relax executable in the library, or it is damaged.
    """
    found = re.search(re.escape(_MAGIC), content)
    if found is None:
        raise ValueError(_other_library(content))
    reader = _Reader(content, found.end())
    try:
        version = reader.text()
        functions = _table(reader)
    except (struct.error, UnicodeDecodeError, ValueError) as error:
        raise ValueError(f"its table of functions is damaged: {error}") from None
    if not functions:
        raise ValueError(f"its executable (format {version}) has no function")
    while match := _CONTEXT.search(content, reader.place):
        reader.place = match.start() - 8
        _add_type(functions, reader.text())
        reader.place = max(reader.place, match.end())
    return functions


def _table(reader: _Reader) -> dict[str, Function]:
    functions = {}
    for _ in range(reader.number()):
        kind = reader.small()
        name = reader.text()
        reader.skip(4)  # first and last instruction, number of arguments, size of the frame
        parameters = [reader.text() for _ in range(reader.number())]
        if kind != _PACKED:
            functions[name] = Function(parameters)
    return functions


def _add_type(functions: dict[str, Function], text: str) -> None:
    """Add what an error text says about a function; ignore texts of functions that have no name outside."""
    head, _, end = text.removeprefix(_START).partition(", annotation=")
    name, _, where = head.partition(", loc=")
    function, end = functions.get(name), end.removesuffix(" ")
    if function is None or not end.endswith(")"):
        return
    if where == "return":
        function.result = end[:-1]
    elif found := _PARAMETER.match(where):
        function.types[int(found[1])] = end[:-1]


def _other_library(content: memoryview) -> str:
    if any(re.search(each, content) for each in _OLD) and not re.search(_LIBRARY, content):
        return (
            "it is a library for TVM's graph executor or Relay's virtual machine, which TVM removed; import "
            "the model into Relax, and compile it again with tvm.compile"
        )
    if re.search(b"__tvm_ffi_", content):
        return (
            "it has functions of TensorIR without a Relax executable; compile an IRModule that has a "
            "function of Relax (@R.function) with tvm.compile"
        )
    return "it is no module of TVM; write it with tvm.compile(…).export_library('model.so')"


class _Reader:
    """Reads numbers and texts one after the other."""

    def __init__(self, content: memoryview, place: int) -> None:
        self.place = place
        self._content = content

    def number(self) -> int:
        return int(self._unpack("<Q"))

    def small(self) -> int:
        return int(self._unpack("<I"))

    def skip(self, numbers: int) -> None:
        self.place += 8 * numbers

    def text(self) -> str:
        size = self.number()
        end = self.place + size
        if size > _MOST_BYTES or end > len(self._content):
            raise ValueError(f"a text of {size} bytes at byte {self.place}")
        found = str(self._content[self.place : end], "utf-8")
        self.place = end
        return found

    def _unpack(self, form: str) -> int:
        (found,) = struct.unpack_from(form, self._content, self.place)
        self.place += struct.calcsize(form)
        return int(found)
