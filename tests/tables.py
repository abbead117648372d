"""Tables of pages that name the tests of each row, in its last cell: `folder/test_file.py::test_name`."""

import re
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parents[1]
_NAMED = re.compile(r"`([\w/]+\.py)::(\w+)`")


def rows_of(page: str, heading: str) -> list[list[str]]:
    """Return the cells of the rows of all tables in a page.

    heading   first cell of the heading of these tables
    """
    return [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in page.splitlines()
        if line.startswith("| ") and not line.startswith(f"| {heading} |")
    ]


def named_in(row: list[str], folders: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return (file, name) of the tests that a row names.

    folders   short form of a folder, as "w/" → its path from the root, as "tests/weaknesses/"
    """
    found = []
    for path, name in _NAMED.findall(row[-1]):
        short, slash, rest = path.partition("/")
        folder = folders.get(short + slash, short + slash)
        found.append((folder + rest, name))
    return found


def functions(path: str) -> set[str]:
    """Return the names of the tests in a file."""
    text = (ROOT / path).read_text()
    return set(re.findall(r"^ *(?:async )?def (test_\w+)\(", text, re.MULTILINE))


def check(row: list[str], folders: Mapping[str, str]) -> None:
    """Check that a row names tests or `none`, and that these tests exist."""
    found = named_in(row, folders)

    assert found or row[-1] == "none"
    assert [(path, name) for path, name in found if name not in functions(path)] == []
