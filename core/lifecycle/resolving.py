"""Which version of a model a request means, and what to say where none can answer."""

from __future__ import annotations

from core.errors import Loading, not_found, unavailable
from core.lifecycle.managed import ManagedModel
from core.lifecycle.version import ModelVersion
from core.request import NEWEST


def resolved(model: ManagedModel, name: str, version: int) -> ModelVersion:
    """The READY version of that number, or the newest READY one.

    name   as the request has it, for the text of an error

    Raises Loading for what is being loaded, with how far that is, CoreError(UNAVAILABLE) for a version that
    is known and not ready, CoreError(NOT_FOUND) for the rest.
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
