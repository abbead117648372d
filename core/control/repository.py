"""The model repository: index, load, unload, and models that join from elsewhere."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from core.control import merging
from core.control.audit import OWN_PROCESS, called_by
from core.control.exchange import Changed, ProcessResults
from core.control.operation import Area, Arguments, change, here, question
from core.errors import unavailable
from core.lifecycle import ModelManager
from core.lifecycle.load_slots import asked_in_a_load
from core.repository import ModelLocation

_LOOK_S = 0.1  # between two questions whether the last request has finished
_SERVE = "the others serve what they served"
_UNLOADED = "the others have unloaded it"


def _index(answers: ProcessResults, arguments: Arguments) -> list[dict[str, Any]]:
    answers.all()
    return merging.index(answers.values, arguments["ready_only"])


def _none(answers: ProcessResults, arguments: Arguments) -> bool:
    return not answers.errors and not answers.silent and all(answers.values.values())


class RepositoryControl(Area, name="repository"):
    """Loads and unloads models.

    Every change raises CoreError(UNAVAILABLE) outside of control mode explicit (`poll`: outside of poll), and
    while the server ends.
    """

    def __init__(self, manager: ModelManager):
        self._manager = manager

    @question("model-repository", _index, asked=lambda arguments: ())
    async def index(self, ready_only: bool = False) -> list[dict[str, Any]]:
        """Return the models of the repositories with version, state and reason."""
        await self._manager.look()
        return self._manager.index(ready_only)

    @change("model-repository", subject="model {name}", otherwise=_SERVE)
    async def load(self, name: str, parameters: Mapping[str, Any]) -> None:
        """Load or reload a model; return when it is ready.

        parameters   `config` (str) and `file:<path>` (bytes) override the repository
        Raises CoreError if it cannot be loaded; the server serves what it served.
        """
        await self._manager.load(name, parameters)

    @change("model-repository", subject="model {name}", otherwise=_UNLOADED)
    async def unload(self, name: str, unload_dependents: bool = False) -> Changed:
        """Unload a model; return when no version is ready. Requests in flight finish."""
        known = self._manager.knows(name)
        await self._manager.unload(name, unload_dependents)
        return Changed(idle=not known)

    # Internal: `location` may be any folder of the machine.
    @change("model-repository", subject="place {name}", otherwise=_SERVE, internal=True)
    async def join(self, name: str, label: str, location: str, folder: str) -> None:
        """Load a model that is in no repository. The arguments are those of core.repository.ModelLocation."""
        await self._manager.join(ModelLocation(name, label, location, folder))

    @here("model-repository", internal=True)
    def joined(self) -> list[ModelLocation]:
        """Return where the models are that have joined."""
        return list(self._manager.joining.places.values())

    async def leave(self, name: str) -> None:
        """Unload a model that has joined, with its composing models; return when no request is left."""
        await self.part(name)
        # Other changes need not wait for requests that take long.
        while not await self.is_empty(name):
            await asyncio.sleep(_LOOK_S)

    @change(
        "model-repository", subject="place {name}", otherwise=_UNLOADED, forgets=True, internal=True
    )
    async def part(self, name: str) -> None:
        """Begin to unload a model that has joined: it takes no more requests."""
        await self._manager.leave(name)

    @question("model-repository", _none, internal=True)
    async def is_empty(self, name: str) -> bool:
        """Return whether no request is left of a model that has left."""
        return self._manager.joining.is_empty(name)

    @change("model-repository", otherwise="the others have looked")
    async def poll(self) -> None:
        """Look at the repositories now; load what has changed, unload what is gone.

        Raises CoreError(UNAVAILABLE) outside of control mode poll.
        """
        if not self._manager.polls:
            raise unavailable(
                "polling is off: start the server with --model-control-mode=poll, or load models by name"
            )
        await self._manager.poll()

    async def load_for_model(self, name: str, parameters: Mapping[str, Any]) -> None:
        """Load a model for another model. Raises what `load` and `_refuse_waiting_for_itself` raise."""
        if self.exchange is not None and asked_in_a_load():
            # The same model asks in every process, each for its own.
            await self.exchange.alone(self._manager.load(name, parameters))
        else:
            self._refuse_waiting_for_itself(name)
            with called_by(OWN_PROCESS):  # tasks of a model may have begun in the call of a client
                await self.load(name, parameters)

    async def unload_for_model(self, name: str, unload_dependents: bool) -> None:
        """Unload a model for another model. Raises what `unload` and `_refuse_waiting_for_itself` raise."""
        if self.exchange is not None and asked_in_a_load():
            await self.exchange.alone(self._manager.unload(name, unload_dependents))
        else:
            self._refuse_waiting_for_itself(name)
            with called_by(OWN_PROCESS):
                await self.unload(name, unload_dependents)

    def _refuse_waiting_for_itself(self, name: str) -> None:
        """With workers, raise CoreError(UNAVAILABLE) during a change: a change must not wait for another."""
        if self.exchange is not None and self.exchange.changing:
            raise unavailable(
                f"a model cannot load or unload '{name}' while models are being loaded: with "
                f"--workers={self.exchange.count} changes of models follow each other; call it from "
                "execute, and again when this fails"
            )
