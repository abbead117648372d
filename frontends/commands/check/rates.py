"""Reads --rate-limit-resource."""

from __future__ import annotations

from collections.abc import Iterable

from core.errors import invalid

GLOBAL = -1


def resources(given: Iterable[str]) -> dict[str, dict[int, int]]:
    """Return name → device (-1 for all) → count of texts such as "R1:10" and "R2:5:0".

    Raises CoreError(INVALID) for another text.
    """
    found: dict[str, dict[int, int]] = {}
    for text in given:
        name, _, rest = text.partition(":")
        numbers = rest.split(":")
        if not name or len(numbers) > 2 or not all(n.isascii() and n.isdigit() for n in numbers):
            raise invalid(
                f"--rate-limit-resource={text}: expected NAME:COUNT or NAME:COUNT:DEVICE, such as R1:10"
            )
        device = int(numbers[1]) if len(numbers) == 2 else GLOBAL
        found.setdefault(name, {})[device] = int(numbers[0])
    return found
