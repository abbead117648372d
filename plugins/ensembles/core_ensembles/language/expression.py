"""Expression: a condition over tensors of an ensemble."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from core.errors import CoreError, invalid
from core.tensor import Tensor
from core_ensembles.language.evaluation import evaluate
from core_ensembles.language.kinds import Form, check_kinds
from core_ensembles.language.nodes import Name, Node, names_in
from core_ensembles.language.parser import parse


@dataclass(frozen=True)
class Expression:
    """A parsed condition.

    where   the beginning of error texts: the ensemble and its parameter
    names   the tensors that it reads, without repetitions, in the order of the text
    """

    text: str
    where: str
    node: Node
    names: tuple[Name, ...]

    def check(self, forms: Mapping[str, Form | None]) -> None:
        """Raise CoreError(INVALID) unless this is a condition over tensors of these forms."""
        try:
            check_kinds(self.node, forms, self.text)
        except CoreError as error:
            raise invalid(f"{self.where}: {error.message}") from None

    def holds(self, tensors: Mapping[str, Tensor]) -> bool:
        """Return whether the condition holds. Any thread.

        tensors   by name; a comparison with one that is not there is false
        Raises CoreError(INVALID) if it holds for some rows only, or if shapes do not fit each other.
        """
        try:
            value = evaluate(self.node, tensors)
        except (ValueError, TypeError, MemoryError) as error:
            raise invalid(f"{self.text}: {error}") from None
        if value is None:
            return False
        true = bool(np.all(value))
        if np.size(value) and true is bool(np.any(value)):
            return true
        found = "has true and false elements" if np.size(value) else "has no element"
        shape = list(np.shape(value))
        raise invalid(
            f"{self.text}: the value of shape {shape} {found}; all rows of a request take the same way: "
            "write any(…) or all(…)"
        )


def expression_of(text: str, where: str) -> Expression:
    """Return the parsed condition. Raises CoreError(INVALID) with `where` and the position of a mistake."""
    try:
        node = parse(text)
    except CoreError as error:
        raise invalid(f"{where}: {error.message}") from None
    names: dict[str, Name] = {}
    for each in names_in(node):
        names.setdefault(each.name, each)
    return Expression(text, where, node, tuple(names.values()))
