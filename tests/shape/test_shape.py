"""The numbers about the code keep their limits."""

from __future__ import annotations

import pytest

from tests.shape.imports import components
from tests.shape.measures import Measure, measures, page


@pytest.mark.parametrize("measure", measures(), ids=lambda each: each.what)
def test_a_number_keeps_its_bound(measure: Measure) -> None:
    assert measure.holds, page([measure], all_offenders=True)


def test_a_circle_of_imports_is_one_component() -> None:
    edges = {"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}, "e": {"f"}, "f": {"e"}}

    assert components(edges) == [["a", "b", "c"], ["e", "f"]]


def test_a_page_names_the_violated_limits() -> None:
    shown = page([Measure("doors", 3, 2, ["core/door.py"]), Measure("rooms", 2, 2, ["core/a.py"])])

    assert "BAD" in shown and "core/door.py" in shown
    assert "core/a.py" not in shown
