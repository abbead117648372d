"""Requests whose answers cannot be the same, and why."""

from __future__ import annotations

from typing import Any

from replay.recorded import Recorded


def reason(recorded: Recorded, difference: dict[str, Any]) -> str | None:
    """Return why an answer of a replay may differ; None if it may not."""
    return None
