"""Parser: tokens → syntax tree, by recursive descent.

or       = and ("or" and)*
and      = not ("and" not)*
not      = "not" not | sum [("<" | "<=" | ">" | ">=" | "==" | "!=") sum]
sum      = product (("+" | "-") product)*
product  = sign (("*" | "/") sign)*
sign     = "-" sign | number | text | "true" | "false" | name | function "(" or ")" | "(" or ")"
"""

from __future__ import annotations

import re
from collections.abc import Callable

from core.errors import CoreError
from core.similar import did_you_mean
from core_ensembles.language.nodes import (
    Binary,
    Call,
    Literal,
    Logical,
    Name,
    Node,
    Unary,
    children,
)
from core_ensembles.language.tokens import Token, tokens_of, wrong

FUNCTIONS = (
    *("any", "all", "count", "present", "rows", "size"),
    *("min", "max", "sum", "mean", "abs"),
)
COMPARISONS = ("<", "<=", ">", ">=", "==", "!=")
DEEPEST = 40
"""Brackets and signs within each other: the parser recurses."""
MOST_LEVELS = 100
"""Levels of a tree: its evaluation recurses."""

_WORDS = {"and", "or", "not", "true", "false"}


def parse(text: str) -> Node:
    """Return the tree of an expression. Raises CoreError(INVALID) with the position of the mistake."""
    return _Parser(text).whole()


class _Parser:
    def __init__(self, text: str):
        self._text = text
        self._tokens = tokens_of(text)
        self._place = 0
        self._depth = 0

    def whole(self) -> Node:
        if self._token.kind == "end":
            raise wrong("an expression is missing", 0, self._text)
        found = self._or()
        if self._token.kind != "end":
            raise self._unexpected("an operator or the end")
        if _levels(found) > MOST_LEVELS:
            raise wrong(f"more than {MOST_LEVELS} operators in a row", 0, self._text)
        return found

    @property
    def _token(self) -> Token:
        return self._tokens[self._place]

    def _next(self) -> Token:
        token = self._tokens[self._place]
        self._place += 1
        return token

    def _is(self, *texts: str) -> bool:
        return self._token.kind in ("sign", "name") and self._token.text in texts

    def _unexpected(self, expected: str) -> CoreError:
        token = self._token
        found = "the end" if token.kind == "end" else f"'{token.text}'"
        return wrong(f"expected {expected}, found {found}", token.at, self._text)

    def _deeper(self, rule: Callable[[], Node]) -> Node:
        self._depth += 1
        if self._depth > DEEPEST:
            text = f"more than {DEEPEST} brackets or signs within each other"
            raise wrong(text, self._token.at, self._text)
        found = rule()
        self._depth -= 1
        return found

    def _or(self) -> Node:
        return self._logical("or", lambda: self._logical("and", self._not))

    def _logical(self, operator: str, rule: Callable[[], Node]) -> Node:
        operands, at = [rule()], self._token.at
        while self._is(operator):
            self._next()
            operands.append(rule())
        return operands[0] if len(operands) == 1 else Logical(operator, tuple(operands), at)

    def _not(self) -> Node:
        if self._is("not"):
            at = self._next().at
            return Unary("not", self._deeper(self._not), at)
        left = self._sum()
        if not self._is(*COMPARISONS):
            return left
        token = self._next()
        found = Binary(token.text, left, self._sum(), token.at)
        if self._is(*COMPARISONS):
            text = "comparisons do not chain: write a < b and b < c"
            raise wrong(text, self._token.at, self._text)
        return found

    def _sum(self) -> Node:
        return self._chain(("+", "-"), lambda: self._chain(("*", "/"), self._sign))

    def _chain(self, operators: tuple[str, ...], rule: Callable[[], Node]) -> Node:
        found = rule()
        while self._is(*operators):
            token = self._next()
            found = Binary(token.text, found, rule(), token.at)
        return found

    def _sign(self) -> Node:
        if not self._is("-"):
            return self._atom()
        at = self._next().at
        found = self._deeper(self._sign)
        if isinstance(found, Literal) and type(found.value) in (int, float) and found.value:
            return Literal(-found.value, at)  # type: ignore[operator]
        return Unary("-", found, at)

    def _atom(self) -> Node:
        if self._is("("):
            self._next()
            return self._closed(self._deeper(self._or))
        token = self._token
        if token.kind == "name" and self._tokens[self._place + 1][:2] == ("sign", "("):
            return self._call()
        if token.kind in ("sign", "end") or (
            token.kind == "name" and token.text in _WORDS - {"true", "false"}
        ):
            raise self._unexpected("a tensor, a value or '('")
        self._next()
        if token.kind == "number":
            return Literal(_number(token.text), token.at)
        if token.kind == "text":
            return Literal(re.sub(r"\\(.)", r"\1", token.text[1:-1]).encode(), token.at)
        if token.kind == "name" and token.text in _WORDS:
            return Literal(token.text == "true", token.at)
        return Name(token.text, token.at)

    def _call(self) -> Node:
        token = self._next()
        if token.text not in FUNCTIONS:
            if token.text in _WORDS:
                self._place -= 1
                raise self._unexpected("a tensor, a value or '('")
            near = did_you_mean(token.text, FUNCTIONS) or f"; there are {', '.join(FUNCTIONS)}"
            raise wrong(f"no function '{token.text}'{near}", token.at, self._text)
        self._next()
        if self._is(")"):
            raise self._unexpected(f"the argument of {token.text}")
        return Call(token.text, self._closed(self._deeper(self._or)), token.at)

    def _closed(self, node: Node) -> Node:
        if not self._is(")"):
            raise self._unexpected("')'")
        self._next()
        return node


def _levels(node: Node) -> int:
    """Return the number of levels of a tree."""
    count, level = 0, [node]
    while level:
        count += 1
        level = [child for each in level for child in children(each)]
    return count


def _number(text: str) -> int | float:
    # A larger integer fits no datatype.
    return int(text) if text.isdecimal() and int(text) < 2**64 else float(text)
