"""The command `test`: `core test NAME` runs the contract tests, like `python -m core_testing NAME`."""

from __future__ import annotations

import argparse

summary = "test an installed backend or frontend against its contract"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="of a backend or frontend, or of its package")
    parser.add_argument(
        "pytest", nargs=argparse.REMAINDER, metavar="…", help="arguments of pytest: -k batch -x"
    )


def run(namespace: argparse.Namespace) -> int:
    """Run the tests; return the exit status of `python -m core_testing`."""
    # Imported here: the list of commands does not need pytest.
    from core_testing.__main__ import main

    return main([namespace.name, *namespace.pytest])
