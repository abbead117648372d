"""Checks that an expression fits the datatypes and sizes of the tensors that it reads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from core.dtypes import BOOL, BYTES, DataType
from core.errors import CoreError
from core_ensembles.language.nodes import Binary, Call, Literal, Logical, Name, Node, Unary
from core_ensembles.language.parser import COMPARISONS
from core_ensembles.language.tokens import wrong

TRUTH, NUMBER, TEXT = "truth values", "numbers", "texts"

_TAKES = {
    **dict.fromkeys(("any", "all", "count"), TRUTH),
    **dict.fromkeys(("min", "max", "sum", "mean", "abs"), NUMBER),
}


class Form(NamedTuple):
    """What is known of a tensor of the ensemble.

    dims      without the batch dimension; -1 is any size
    batched   whether a batch dimension stands before them
    """

    dtype: DataType
    dims: tuple[int, ...]
    batched: bool

    @property
    def shape(self) -> tuple[int, ...]:
        return (-1, *self.dims) if self.batched else self.dims


class Found(NamedTuple):
    """What is known of the value of an expression.

    kind   None if it depends on a tensor of unknown form
    many   whether it surely has several elements for each row or request
    """

    kind: str | None
    many: bool = False


def check_kinds(node: Node, forms: Mapping[str, Form | None], text: str) -> None:
    """Raise CoreError(INVALID) unless an expression is one truth value for each row or request.

    forms   of the tensors; None for one that only a load can tell
    """
    found = _Kinds(forms, text).of(node)
    if found.kind not in (None, TRUTH):
        raise wrong(f"a condition is true or false; these are {found.kind}", node.at, text)
    if found.many:
        advice = "write any(…) or all(…)"
        raise wrong(f"several elements for each row or request; {advice}", node.at, text)


class _Kinds:
    def __init__(self, forms: Mapping[str, Form | None], text: str):
        self._forms = forms
        self._text = text

    def of(self, node: Node) -> Found:
        if isinstance(node, Literal):
            return Found(_kind_of_literal(node.value))
        if isinstance(node, Name):
            return self._name(node)
        if isinstance(node, Unary):
            kind = TRUTH if node.operator == "not" else NUMBER
            return Found(kind, self._expect(node.operand, kind, f"'{node.operator}'").many)
        if isinstance(node, Binary):
            return self._binary(node)
        if isinstance(node, Logical):
            found = [self._expect(each, TRUTH, f"'{node.operator}'") for each in node.operands]
            return Found(TRUTH, any(each.many for each in found))
        return self._call(node)

    def _name(self, node: Name) -> Found:
        if (form := self._forms[node.name]) is None:
            return Found(None)
        kind = {BOOL: TRUTH, BYTES: TEXT}.get(form.dtype, NUMBER)
        return Found(kind, any(size not in (1, -1) for size in form.dims))

    def _binary(self, node: Binary) -> Found:
        what = f"'{node.operator}'"
        if node.operator in ("==", "!="):
            left, right = self.of(node.left), self.of(node.right)
            if None not in (left.kind, right.kind) and left.kind != right.kind:
                raise self._wrong(f"{what} compares {left.kind} with {right.kind}", node)
        else:
            left = self._expect(node.left, NUMBER, what)
            right = self._expect(node.right, NUMBER, what)
        kind = TRUTH if node.operator in COMPARISONS else NUMBER
        return Found(kind, left.many or right.many)

    def _call(self, node: Call) -> Found:
        function = node.function
        if function in ("present", "rows", "size"):
            if not isinstance(node.argument, Name):
                raise self._wrong(f"{function} takes the name of a tensor", node.argument)
            return Found(TRUTH if function == "present" else NUMBER)
        found = self._expect(node.argument, _TAKES[function], function)
        if function == "abs":
            return Found(NUMBER, found.many)
        return Found(TRUTH if function in ("any", "all") else NUMBER)

    def _expect(self, node: Node, kind: str, what: str) -> Found:
        found = self.of(node)
        if found.kind not in (None, kind):
            raise self._wrong(f"{what} takes {kind}, not {found.kind}", node)
        return found

    def _wrong(self, message: str, node: Node) -> CoreError:
        return wrong(message, node.at, self._text)


def _kind_of_literal(value: bool | int | float | bytes) -> str:
    if isinstance(value, bool):
        return TRUTH
    return TEXT if isinstance(value, bytes) else NUMBER
