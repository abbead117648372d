"""What a replay must show: enough answers that are equal, and a reason for every other one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

WHOLE = 6_500  # answers that are equal at least, of the whole suite; it has about 7,400
MOST_UNCOMPARED = 0.05  # of all records: clients that have left, and answers that were cut
_NOTED = ("differing", "unanswered", "unsent")  # kinds of records in the list of differences


def problems(
    reports: Mapping[str, Mapping[str, Any]], unexpected: Sequence[str], least: int
) -> list[str]:
    """Return what is wrong with the replay of all servers; empty if nothing is.

    reports      name of the server → report of `core replay --json`
    unexpected   texts of differences without a known reason
    least        answers that must be equal
    """
    found = list(unexpected)
    for name, report in reports.items():
        noted, listed = sum(report[each] for each in _NOTED), len(report["differences"])
        if noted != listed:
            found.append(
                f"{name}: {noted:,} answers differ or are missing, but {listed:,} are listed: the others "
                "were not looked at"
            )
    equal = sum(each["equal"] for each in reports.values())
    if equal < least:
        found.append(f"{equal:,} answers are equal, expected {least:,} at least")
    uncompared = sum(each["uncompared"] for each in reports.values())
    total = sum(
        each[name] for each in reports.values() for name in ("equal", "uncompared", *_NOTED)
    )
    if uncompared > MOST_UNCOMPARED * total:
        found.append(
            f"{uncompared:,} of {total:,} answers were not compared, expected {MOST_UNCOMPARED:.0%} at most"
        )
    return found
