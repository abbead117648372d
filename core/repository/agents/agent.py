"""RepositoryAgent and AgentModel: the interface for authors of agents.

    class Unpack(core.RepositoryAgent):
        def load(self, model):
            folder = model.acquire()
            shutil.unpack_archive(model.location / "model.zip", folder)
            model.update(folder)

Source of the actions and their order: the repository agents of Triton.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from core.config import ModelConfig
from core.errors import invalid
from core.repository.private import PrivateDirectory, in_memory


class RepositoryAgent:
    """An agent for all models of the process that name it. Worker threads, several models at a time.

    name   in configurations; set by core if it is empty

    For each load of the model's files, core calls each action at most once: load, then load_complete or
    load_fail; after load_complete later unload and unload_complete.
    """

    name = ""

    def load(self, model: AgentModel) -> None:
        """Check or change the model's files. Only the configuration was read before.

        An exception fails the load.
        """

    def load_complete(self, model: AgentModel) -> None:
        """Handle that the versions of the model serve. Exceptions here and in later actions are logged."""

    def load_fail(self, model: AgentModel) -> None:
        """Handle that a load has failed after this agent's `load` was called, here or at a later step."""

    def unload(self, model: AgentModel) -> None:
        """Handle that no version takes new requests any more; accepted requests still run."""

    def unload_complete(self, model: AgentModel) -> None:
        """Handle that the last version is unloaded. The folder of `acquire` is removed after this call."""


class AgentModel:
    """An agent's view of one model during one load. Used by one thread at a time.

    name         of the model
    config       a copy of its configuration at the start of the load
    parameters   parameters of this agent in the configuration, by key
    state        free for the agent's own data
    """

    def __init__(
        self, name: str, config: ModelConfig, parameters: Mapping[str, str], location: Path
    ):
        self.name = name
        self.config = config
        self.parameters = dict(sorted(parameters.items()))
        self.state: Any = None
        self._location = location
        self._loading = True
        self._acquired: PrivateDirectory | None = None

    @property
    def location(self) -> Path:
        """Return the current folder of the model: the repository's, or what `update` of an agent has set.

        Write only to the folder of `acquire`: any other may be the user's repository.
        """
        return self._location

    def is_true(self, key: str) -> bool:
        """Return a boolean parameter; False without it. Raises CoreError(INVALID) for another value."""
        value = self.parameters.get(key, "false").lower()
        if value not in ("true", "false"):
            raise invalid(
                f"parameter '{key}' is '{self.parameters[key]}', it must be true or false"
            )
        return value == "true"

    def acquire(self, memory_bytes: int | None = None) -> Path:
        """Return an empty folder that this agent may write to. Later calls return the same folder.

        memory_bytes   number of bytes that will be written: asks for a folder in memory, if there is room;
                       None: a folder on disk
        core removes the folder after unload_complete or load_fail. Raises OSError if it cannot be made.
        """
        if self._acquired is None:
            self._acquired = PrivateDirectory() if memory_bytes is None else in_memory(memory_bytes)
        return self._acquired.path

    def release(self) -> None:
        """Remove the folder of `acquire` early, if any. Raises CoreError(INVALID) if it is the location."""
        if self._acquired is not None:
            if self._location == self._acquired.path:
                raise invalid(f"the folder '{self._location}' is that of model '{self.name}' now")
            self.remove()

    def update(self, location: Path) -> None:
        """Set the model's folder to `location`. Call only during `load`.

        Raises CoreError(INVALID) at another time, and if `location` is no folder.
        """
        if not self._loading:
            raise invalid("the location of a model can only be updated while an agent's load runs")
        if not location.is_dir():
            raise invalid(f"'{location}' is no folder on this machine")
        self._location = Path(location)

    def settle(self) -> None:
        """End the agent's load: the location becomes fixed. Called by core."""
        self._loading = False

    def remove(self) -> None:
        """Remove the folder of `acquire`, if there is one. Called by core, after the last action."""
        if self._acquired is not None:
            self._acquired.remove()
            self._acquired = None
