"""docs/start/triton-releases.md names tests that exist, and each file of tests for later releases."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "start" / "triton-releases.md").read_text()
FOLDERS = {"c/": "tests/conformance/", "w/": "tests/weaknesses/"}
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in PAGE.splitlines()
    if line.startswith("| ") and not line.startswith("| Triton |")
]
NAMED = re.compile(r"`([\w/]+\.py)::(\w+)`")
NEWER = ("test_since_2_51.py", "test_cache_order.py", "test_cancelled_requests.py")


def named_in(row):
    return [
        (FOLDERS.get(path[:2], path[:2]) + path[2:], name) for path, name in NAMED.findall(row[-1])
    ]


def functions(path):
    text = (ROOT / path).read_text()
    return set(re.findall(r"^ *(?:async )?def (test_\w+)\(", text, re.MULTILINE))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0][:50])
def test_every_test_of_a_row_is_there(row):
    found = named_in(row)

    assert found or row[-1] == "none"
    assert [(path, name) for path, name in found if name not in functions(path)] == []


@pytest.mark.parametrize("file", NEWER)
def test_every_test_of_later_releases_has_a_row(file):
    path = f"tests/conformance/{file}"

    assert {name for row in ROWS for at, name in named_in(row) if at == path} == functions(path)
