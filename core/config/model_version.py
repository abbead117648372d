"""Parse the model versions that clients send."""

from __future__ import annotations

import re

from core.errors import invalid
from core.request import NEWEST


def parse_version(text: str) -> int:
    """Return the number of a model version; NEWEST for "".

    Raises CoreError(INVALID) with Triton's text if it is no number, negative, or 2**63 and more.
    """
    if not text:
        return NEWEST
    number = int(text) if re.fullmatch(r"[+-]?[0-9]{1,19}", text) else 2**63
    if not -(2**63) <= number < 2**63:
        raise invalid(
            f"failed to get model version from specified version string '{text}' (details: stol), "
            "version should be an integral value > 0"
        )
    if number < 0:  # also -1: clients cannot send NEWEST
        raise invalid(
            f"invalid model version specified '{text}' , version should be an integral value > 0"
        )
    return number
