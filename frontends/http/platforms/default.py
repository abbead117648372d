"""The model of a request that names none."""

from __future__ import annotations

from core.errors import invalid
from core.server import InferenceServer


def default_model(server: InferenceServer, named: str, flag: str) -> str:
    """The model that was named, or the only one that serves. Raises CoreError(INVALID) where several do.

    flag   where it is named, for the error
    """
    if named:
        return named
    names = sorted({each.name for each in server.models.versions() if each.state == "READY"})
    if len(names) != 1:
        found = ", ".join(names[:5]) + (", …" if len(names) > 5 else "") or "none"
        raise invalid(
            f"requests here name no model, and not one alone serves (found: {found}); name it with {flag}"
        )
    return names[0]
