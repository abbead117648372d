"""Which names a model may have. Names come from clients, and become paths."""

from __future__ import annotations

from core.errors import invalid


def checked_name(name: str) -> str:
    """The name without blanks around it. Raises CoreError(INVALID) for what names no folder."""
    name = name.strip()
    if not name:
        raise invalid("Model name cannot be empty. Please enter a valid name to deploy.")
    if "/" in name or ".." in name or "\0" in name or name == ".":
        raise invalid(
            f"invalid model name '{name}', model name must not contain path traversal characters"
        )
    return name
