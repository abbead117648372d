"""The syntax tree of an expression. `at` is the position of a node in the text, for errors."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Literal:
    """A number, a text as bytes, true or false."""

    value: bool | int | float | bytes
    at: int


@dataclass(frozen=True)
class Name:
    """A tensor of the ensemble."""

    name: str
    at: int


@dataclass(frozen=True)
class Unary:
    """`not` or `-` before an operand."""

    operator: str
    operand: Node
    at: int


@dataclass(frozen=True)
class Binary:
    """Two operands with a comparison or an arithmetic operator between them."""

    operator: str
    left: Node
    right: Node
    at: int


@dataclass(frozen=True)
class Logical:
    """Two or more operands with `and`, or with `or`, between them."""

    operator: str
    operands: tuple[Node, ...]
    at: int


@dataclass(frozen=True)
class Call:
    """A function of one argument."""

    function: str
    argument: Node
    at: int


Node = Literal | Name | Unary | Binary | Logical | Call


def children(node: Node) -> tuple[Node, ...]:
    """Return the operands of a node."""
    if isinstance(node, Unary):
        return (node.operand,)
    if isinstance(node, Binary):
        return (node.left, node.right)
    if isinstance(node, Logical):
        return node.operands
    if isinstance(node, Call):
        return (node.argument,)
    return ()


def names_in(node: Node) -> Iterator[Name]:
    """Yield the tensors that an expression reads, in the order of the text."""
    if isinstance(node, Name):
        yield node
    for child in children(node):
        yield from names_in(child)
