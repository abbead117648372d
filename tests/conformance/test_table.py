"""docs/start/triton-releases.md names tests that exist, and each file of tests for later releases."""

import pytest

from tests.tables import ROOT, check, functions, named_in, rows_of

ROWS = rows_of((ROOT / "docs" / "start" / "triton-releases.md").read_text(), "Triton")
FOLDERS = {"c/": "tests/conformance/", "w/": "tests/weaknesses/"}
NEWER = ("test_since_2_51.py", "test_cache_order.py", "test_cancelled_requests.py")


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0][:50])
def test_every_test_of_a_row_is_there(row):
    check(row, FOLDERS)


@pytest.mark.parametrize("file", NEWER)
def test_every_test_of_later_releases_has_a_row(file):
    path = f"tests/conformance/{file}"

    named = {name for row in ROWS for at, name in named_in(row, FOLDERS) if at == path}
    assert named == functions(path)
