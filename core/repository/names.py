"""Which names a model may have. Names come from clients, and become paths."""

from __future__ import annotations

from core.errors import invalid


def checked_name(name: str) -> str:
    """The name without blanks around it. Raises CoreError(INVALID) for what names no folder."""
    name = name.strip()
    if not name:
        raise invalid("Model name cannot be empty. Please enter a valid name to deploy.")
    if ".." in name or not is_folder_name(name):
        raise invalid(
            f"invalid model name '{name}', model name must not contain path traversal characters"
        )
    return name


def is_folder_name(name: str) -> bool:
    """Whether a path made of the name and its repository's folder stays directly below that folder.

    False too for a name that is no text (a file system may hold such), since no client could say it.
    """
    return (
        name not in ("", ".", "..")
        and "/" not in name
        and "\0" not in name
        and not any("\ud800" <= character <= "\udfff" for character in name)
    )
