"""Resolving: finds the version for a request, or the error if none can answer."""

from __future__ import annotations

from core.errors import Loading, not_found, unavailable
from core.lifecycle.managed import ManagedModel
from core.lifecycle.version import ModelVersion
from core.request import NEWEST


def resolved(model: ManagedModel, name: str, version: int) -> ModelVersion:
    """Return the READY version of that number, or the newest READY one.

    name   from the request, for the text of an error

    Raises Loading with the progress during a load. Raises CoreError(UNAVAILABLE) for a known version that
    is not ready, and CoreError(NOT_FOUND) otherwise.
    """
    if version == NEWEST:
        if model.newest is not None:
            return model.newest
        _refuse_loading(model)
        raise not_found(f"Request for unknown model: '{name}' has no available versions")
    found = model.versions.get(version)
    if found is not None and found.state == "READY":
        return found
    if model.newest is None or (found is not None and found.state == "LOADING"):
        _refuse_loading(model)
    if found is None:
        raise not_found(f"Request for unknown model: '{name}' version {version} is not found")
    raise unavailable(
        f"Request for unknown model: '{name}' version {version} is not at ready state"
    )


def _refuse_loading(model: ManagedModel) -> None:
    if text := model.progress():
        raise Loading(text)
