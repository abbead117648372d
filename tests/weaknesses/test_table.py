"""docs/operate/weaknesses.md has each number that was published, and its tests exist."""

import re
from pathlib import Path

import pytest

from tests.tables import ROOT, check, named_in, rows_of

PAGE = (ROOT / "docs" / "operate" / "weaknesses.md").read_text()
ROWS = rows_of(PAGE, "what went wrong")
FOLDERS = {"w/": "tests/weaknesses/"}
# Of Triton, as far as advisories and databases of weaknesses name them, and of its neighbours.
PUBLISHED = {
    *("2023-31036", "2024-0087", "2024-0088", "2024-0095", "2024-0100", "2024-0103", "2024-0116"),
    *("2024-53880", "2025-23268", "2025-33201", "2025-33211", "2026-24146"),
    *(f"2025-{number}" for number in (23310, 23311, *range(23316, 23330), 23331)),
    *(f"2025-{number}" for number in (23333, 23334, 23335, 23336)),
    *(f"2026-{number}" for number in (24173, 24174, 24175, 24206, 24207, 24208, 24209, 24215)),
    *("2023-43654", "2023-48022", "2024-2912", "2025-27520"),
}
NUMBER = re.compile(r"\b20\d\d-\d{4,5}\b")


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0][:50])
def test_every_test_of_a_row_is_there(row):
    check(row, FOLDERS)


def test_every_number_that_was_published_has_a_row():
    numbers = NUMBER.findall(PAGE)

    assert set(numbers) == PUBLISHED
    assert len(numbers) == len(set(numbers))


def test_only_missing_parts_need_no_test():
    assert [row[2] for row in ROWS if row[-1] == "none"] == []


def test_numbers_that_tests_name_are_in_the_table():
    folder = Path(__file__).parent
    named = {
        f"{year}-{number}"
        for file in folder.glob("test_*.py")
        for year, numbers in re.findall(r"CVE-(20\d\d)-([\d, \n]+(?:and \d+)?)", file.read_text())
        for number in re.findall(r"\d{4,5}", numbers)
    }

    assert named
    assert named <= PUBLISHED


def test_every_file_of_this_folder_is_in_the_table():
    files = {file.name for file in Path(__file__).parent.glob("test_*.py")} - {"test_table.py"}

    assert files == {
        Path(path).name
        for row in ROWS
        for path, _ in named_in(row, FOLDERS)
        if "weaknesses" in path
    }
