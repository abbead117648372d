"""`core test NAME`: the same as `python -m core_testing NAME`."""

from __future__ import annotations

from collections.abc import Sequence

summary = "test a backend or frontend against its contract"


def main(arguments: Sequence[str]) -> int:
    """Run the tests of a backend or frontend; return the exit status."""
    from core_testing.__main__ import main as test  # imports pytest

    return test(arguments)
