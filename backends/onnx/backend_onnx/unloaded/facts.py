"""Facts: the inputs, outputs, operators and files of an ONNX model, read without ONNX Runtime.

The numbers are those of the fields in onnx.proto.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from backend_onnx.graph import Graph, TensorInfo, by_type_name
from backend_onnx.unloaded.wire import Buffer, Damaged, fields, inner, text, whole

_TYPES = {
    1: "float",
    2: "uint8",
    3: "int8",
    4: "uint16",
    5: "int16",
    6: "int32",
    7: "int64",
    8: "string",
    9: "bool",
    10: "float16",
    11: "double",
    12: "uint32",
    13: "uint64",
    16: "bfloat16",
}
_DEEPEST = 32  # graphs in graphs, and types in types
_MOST_NODES = 1_000_000
_MOST_ORDERED = 100_000  # nodes whose order is checked
_EXTERNAL = 1  # TensorProto.DataLocation

# Of each dimension its number, None if it has none; None for an unknown rank.
_Sizes = list[int | None] | None


@dataclass
class Facts:
    """What a file says of itself.

    opsets      domain → version; "" is that of ONNX
    operators   (domain, operator) of all nodes, those of functions and inner graphs included
    functions   (domain, name) of the functions that the file defines
    needed      tensors that nodes of the outermost graph read
    made        tensors that these nodes write
    repeated    inputs that come twice, and tensors with more than one source among inputs and these nodes
    nodes       what each of these nodes reads and writes; none of a graph with too many
    external    name of each file with weights → bytes that it must have
    open_outputs
                outputs with sizes that ONNX Runtime may infer, named or not: those without a number → their
                places; None if the rank is unknown
    """

    ir_version: int = 0
    opsets: dict[str, int] = field(default_factory=dict)
    operators: set[tuple[str, str]] = field(default_factory=set)
    functions: set[tuple[str, str]] = field(default_factory=set)
    external: dict[str, int] = field(default_factory=dict)
    inputs: dict[str, TensorInfo] = field(default_factory=dict)
    outputs: dict[str, TensorInfo] = field(default_factory=dict)
    initializers: set[str] = field(default_factory=set)
    needed: set[str] = field(default_factory=set)
    made: set[str] = field(default_factory=set)
    repeated: set[str] = field(default_factory=set)
    nodes: list[tuple[list[str], list[str]]] = field(default_factory=list)
    open_outputs: dict[str, set[int] | None] = field(default_factory=dict)
    has_graph: bool = False

    @property
    def missing(self) -> list[str]:
        """Names of tensors that a node or an output of the graph needs, and that nothing gives."""
        given = {"", *self.inputs, *self.initializers, *self.made}
        return sorted({*self.needed, *self.outputs} - given)

    @property
    def graph(self) -> Graph:
        """The inputs and outputs as a session has them: an input with a default is no required one."""
        # Before IR version 4, every initializer is an input as well, and none can be replaced.
        required = {n: i for n, i in self.inputs.items() if n not in self.initializers}
        optional = {n: i for n, i in self.inputs.items() if n in self.initializers}
        return Graph(required, self.outputs, optional if self.ir_version >= 4 else {})


class _Reader:
    def __init__(self) -> None:
        self.facts = Facts()
        self._nodes = 0

    def model(self, message: Buffer) -> None:
        for number, value in fields(message):
            if number == 1:
                self.facts.ir_version = whole(value)
            elif number == 7:
                self.facts.has_graph = True
                self._graph(inner(value), 0)
            elif number == 8:
                domain, version = self._opset(inner(value))
                self.facts.opsets[domain] = version
            elif number == 25:
                self._function(inner(value))

    def _opset(self, message: Buffer) -> tuple[str, int]:
        domain, version = "", 0
        for number, value in fields(message):
            if number == 1:
                domain = text(value)
            elif number == 2:
                version = whole(value)
        return "" if domain == "ai.onnx" else domain, version

    def _function(self, message: Buffer) -> None:
        name = domain = ""
        for number, value in fields(message):
            if number == 1:
                name = text(value)
            elif number == 10:
                domain = text(value)
            elif number == 7:
                self._node(inner(value), 1)
        self.facts.functions.add((domain, name))

    def _graph(self, message: Buffer, depth: int) -> None:
        if depth > _DEEPEST:
            raise Damaged(f"graphs are nested more than {_DEEPEST} deep")
        for number, value in fields(message):
            if number == 1:
                self._node(inner(value), depth)
            elif number == 5:
                self._tensor(inner(value), depth)
            elif depth == 0 and number in (11, 12):
                self._value(inner(value), is_input=number == 11)
            elif depth == 0 and number == 15:
                for part, found in fields(inner(value)):
                    if part == 1:  # the values of a sparse tensor
                        self._tensor(inner(found), depth)

    def _value(self, message: Buffer, is_input: bool) -> None:
        info, sizes = _value_info(message)
        if is_input and info.name in self.facts.inputs:
            self.facts.repeated.add(info.name)
        (self.facts.inputs if is_input else self.facts.outputs)[info.name] = info
        if is_input or not info.type.startswith("tensor("):
            return
        if sizes is None:
            self.facts.open_outputs[info.name] = None
        elif places := {place for place, size in enumerate(sizes) if size is None}:
            self.facts.open_outputs[info.name] = places

    def _node(self, message: Buffer, depth: int) -> None:
        self._nodes += 1
        if self._nodes > _MOST_NODES:
            raise Damaged(f"it has more than {_MOST_NODES} nodes")
        operator = domain = ""
        reads, writes = list[str](), list[str]()
        for number, value in fields(message):
            if number == 4:
                operator = text(value)
            elif number == 7:
                domain = text(value)
            elif number in (1, 2):
                (reads if number == 1 else writes).append(text(value))
            elif number == 5:
                self._attribute(inner(value), depth)
        if depth == 0:
            self._ordered(reads, [each for each in writes if each])  # "" is an output left out
        self.facts.operators.add(("" if domain == "ai.onnx" else domain, operator))

    def _ordered(self, reads: list[str], writes: list[str]) -> None:
        facts = self.facts
        for each in writes:
            (facts.repeated if each in facts.made else facts.made).add(each)
        facts.needed.update(reads)
        if self._nodes < _MOST_ORDERED:
            facts.nodes.append((reads, writes))
        else:
            facts.nodes.clear()

    def _attribute(self, message: Buffer, depth: int) -> None:
        for number, value in fields(message):
            if number in (6, 11):
                self._graph(inner(value), depth + 1)
            elif number in (5, 10):
                self._tensor(inner(value), depth + 1)

    def _tensor(self, message: Buffer, depth: int) -> None:
        name, external, location = "", False, list[Buffer]()
        for number, value in fields(message):
            if number == 8:
                name = text(value)
            elif number == 14:
                external = whole(value) == _EXTERNAL
            elif number == 13:
                location.append(inner(value))
        if depth == 0:
            self.facts.initializers.add(name)
        if external:
            self._external(location)

    def _external(self, entries: list[Buffer]) -> None:
        pairs = {}
        for entry in entries:
            key = found = ""
            for number, value in fields(entry):
                if number == 1:
                    key = text(value)
                elif number == 2:
                    found = text(value)
            pairs[key] = found
        name = pairs.get("location", "")
        end = _number(pairs.get("offset", "")) + _number(pairs.get("length", ""))
        self.facts.external[name] = max(end, self.facts.external.get(name, 0))


def _number(digits: str) -> int:
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 19 else 0


def facts_of(path: Path) -> Facts:
    """Return the facts of a file. Raises Damaged if it is no ONNX model, OSError if it cannot be read."""
    reader = _Reader()
    with path.open("rb") as file:
        try:
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except ValueError as error:  # an empty file
            raise Damaged(str(error)) from error
        view = memoryview(mapped)
        try:
            reader.model(view)
        except Damaged as error:
            # Without the traceback, nothing holds a view of the file, so that it can be closed.
            raise Damaged(str(error)) from None
        finally:
            del view
    if not reader.facts.has_graph:
        raise Damaged("No graph was found in the protobuf.")
    facts = reader.facts
    facts.repeated |= facts.inputs.keys() & facts.made
    return facts


def _value_info(message: Buffer) -> tuple[TensorInfo, _Sizes]:
    """Return an input or output, and its sizes."""
    name, kind = "", ""
    sizes: _Sizes = None
    for number, value in fields(message):
        if number == 1:
            name = text(value)
        elif number == 2:
            kind, sizes = _type(inner(value), 0)
    dims = tuple(-1 if size is None else size for size in sizes or ())
    return TensorInfo(name, kind, by_type_name(kind), dims), sizes


def _type(message: Buffer, depth: int) -> tuple[str, _Sizes]:
    """Return the name that ONNX Runtime has for a type, and its sizes."""
    if depth > _DEEPEST:
        raise Damaged("types are nested too deeply")
    kind = ""
    sizes: _Sizes = None
    for number, value in fields(message):
        if number == 1:
            kind, sizes = _tensor_type(inner(value))
        elif number == 4:
            kind = f"seq({_inner_type(inner(value), 1, depth)})"
        elif number == 5:
            kind = f"map({_key_type(inner(value))},{_inner_type(inner(value), 2, depth)})"
        elif number == 9:
            kind = f"optional({_inner_type(inner(value), 1, depth)})"
        elif number == 8:
            kind = "sparse_tensor"
    return kind, sizes


def _tensor_type(message: Buffer) -> tuple[str, _Sizes]:
    element = 0
    sizes: _Sizes = None
    for number, value in fields(message):
        if number == 1:
            element = whole(value)
        elif number == 2:
            sizes = list(_sizes(inner(value)))
    return f"tensor({_TYPES.get(element, f'unknown type {element}')})", sizes


def _sizes(shape: Buffer) -> Iterator[int | None]:
    """Yield the number of each size, None for one that has a name or nothing."""
    for number, value in fields(shape):
        if number != 1:
            continue
        size: int | None = None
        for part, found in fields(inner(value)):
            if part == 1:
                size = max(whole(found), -1)
        yield size


def _inner_type(message: Buffer, place: int, depth: int) -> str:
    for number, value in fields(message):
        if number == place:
            return _type(inner(value), depth + 1)[0]
    return ""


def _key_type(message: Buffer) -> str:
    for number, value in fields(message):
        if number == 1:
            return _TYPES.get(whole(value), "")
    return ""
