"""RepositoryAgent and AgentModel: what the author of an agent reads.

    class Unpack(core.RepositoryAgent):
        def load(self, model):
            folder = model.acquire()
            shutil.unpack_archive(model.location / "model.zip", folder)
            model.update(folder)

Source of the actions and their order: the repository agents of Triton.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from core.config import ModelConfig
from core.errors import invalid
from core.repository.private import PrivateDirectory, in_memory

logger = logging.getLogger("core")


class RepositoryAgent:
    """One agent, for all models of the process that name it. Worker threads, several models at a time.

    name   as configurations say it; set by core when it is empty

    A model goes through load, then load_complete or load_fail; after load_complete through unload and
    unload_complete. Each is called once, for each load of the model's files.
    """

    name = ""

    def load(self, model: AgentModel) -> None:
        """Before anything reads the model's files but its configuration. An exception fails the load."""

    def load_complete(self, model: AgentModel) -> None:
        """The versions of the model serve. Exceptions are logged, here and in what follows."""

    def load_fail(self, model: AgentModel) -> None:
        """This agent's load, that of another or of the model has failed."""

    def unload(self, model: AgentModel) -> None:
        """No version takes new requests any more; those in flight still run."""

    def unload_complete(self, model: AgentModel) -> None:
        """The last version has been unloaded; the folder of `acquire` is removed after that."""


class AgentModel:
    """One model, as one agent sees it during one load. Used by one thread at a time.

    name         of the model
    config       what its configuration said when the load began; a copy
    parameters   of this agent in the configuration, by key
    state        for the agent to keep what it wants
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
        """The model's folder now: what the agent before this one, or `update`, has made it.

        Only the folder of `acquire` may be written to: any other may be the user's repository.
        """
        return self._location

    def is_true(self, key: str) -> bool:
        """Return a parameter that is true or false; False without it. Raises CoreError(INVALID)."""
        value = self.parameters.get(key, "false").lower()
        if value not in ("true", "false"):
            raise invalid(
                f"parameter '{key}' is '{self.parameters[key]}', it must be true or false"
            )
        return value == "true"

    def acquire(self, memory_bytes: int | None = None) -> Path:
        """A new folder, empty, for this agent to write to; the same one when asked again.

        memory_bytes   how much will be written, for a folder in memory where there is room for it;
                       None: a folder on disk
        It is removed after unload_complete or load_fail. Raises OSError when it cannot be made.
        """
        if self._acquired is None:
            self._acquired = PrivateDirectory() if memory_bytes is None else in_memory(memory_bytes)
        return self._acquired.path

    def release(self) -> None:
        """Remove the folder of `acquire` before its time. Raises CoreError(INVALID) if it is the location."""
        if self._acquired is not None:
            if self._location == self._acquired.path:
                raise invalid(f"the folder '{self._location}' is that of model '{self.name}' now")
            self._acquired.remove()
            self._acquired = None

    def update(self, location: Path) -> None:
        """From now on the model's folder is this one. Only during `load`.

        Raises CoreError(INVALID) at another time, and for what is no folder.
        """
        if not self._loading:
            raise invalid("the location of a model can only be updated while an agent's load runs")
        if not location.is_dir():
            raise invalid(f"'{location}' is no folder on this machine")
        self._location = Path(location)

    def settle(self) -> None:
        """The agent's load is over: the location stays as it is. Called by core."""
        self._loading = False

    def remove(self) -> None:
        """Give back the folder of `acquire`. Called by core, after the last action."""
        if self._acquired is not None:
            self._acquired.remove()
            self._acquired = None
