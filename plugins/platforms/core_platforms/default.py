"""The default model, for a request that names none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from core.errors import invalid

if TYPE_CHECKING:
    from core.server import InferenceServer


def default_model(server: InferenceServer, named: str, flag: str) -> str:
    """Return `named`; if it is empty, the name of the only model with a version that is READY.

    flag   option that names the model, for the error text
    Raises CoreError(INVALID) if `named` is empty and no model, or more than one, is READY.
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
