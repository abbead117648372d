"""Treated: a model's folder after its agents have run, and the agent calls from load to unload."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable
from copy import deepcopy
from dataclasses import replace

from core.errors import CoreError, internal
from core.repository.agents.agent import AgentModel, RepositoryAgent
from core.repository.folder import FolderRepository
from core.repository.reading import fill_from
from core.repository.source import ModelDirectory, ModelSource, digest_of, is_flat, version_stamps

logger = logging.getLogger("core")


class Treated(ModelDirectory):
    """The folder that the last agent made of `origin` or left unchanged. Worker threads.

    source   of a model whose configuration names agents; its files are fetched (`fetch`)
    find     name → agent

    Call `treat` first, then `complete` or `fail`. `unload` may be called any number of times, `remove` after
    the last version that reads the folder. If an agent raises, `treat` fails; other methods log that.
    """

    def __init__(self, source: ModelSource, find: Callable[[str], RepositoryAgent]):
        super().__init__(source.directory.path, source.directory.address)
        self.origin = source.directory
        self._source = source
        self._find = find
        self._models: list[tuple[RepositoryAgent, AgentModel]] = []
        self._next = ""  # the action to report next: "unload", then "unload_complete"
        self._turn = threading.Lock()

    def treat(self) -> ModelSource:
        """Call `load` of the agents in their order; return the source to load.

        Raises CoreError(INTERNAL) with the names of model and agent if an agent raises or is missing. Also
        raises the errors of completing the configuration from the files.
        """
        for wanted in self._source.config.model_repository_agents.agents:
            try:
                self._load(wanted.name, dict(wanted.parameters))
            except Exception as error:
                raise internal(
                    f"repository agent '{wanted.name}' refuses model '{self._source.name}': {_text_of(error)}"
                ) from error
        return self._found()

    def _load(self, name: str, parameters: dict[str, str]) -> None:
        agent = self._find(name)
        config = deepcopy(self._source.config)
        model = AgentModel(self._source.name, config, parameters, self.path)
        self._models.append((agent, model))
        agent.load(model)
        model.settle()
        if model.location != self.path:
            self.path, self.address = model.location, str(model.location)

    def _found(self) -> ModelSource:
        """Return the source of the folder that the agents have left.

        In a new folder all versions get one stamp, which changes with any file of the old folder.
        """
        source = self._source
        listing = FolderRepository(str(self.path.parent)).listing(self.path.name) or {}
        config = deepcopy(source.config)
        fill_from(listing, config, source.folder or source.name, source.overridden)
        if self.path == source.directory.path:
            return replace(source, directory=self, config=config)
        versions = [f"{number} {stamp}" for number, stamp in source.versions.items()]
        whole = digest_of([*versions, source.shared])
        return replace(
            source,
            directory=self,
            config=config,
            versions=dict.fromkeys(version_stamps(listing), whole),
            flat=is_flat(listing),
        )

    def complete(self) -> None:
        """Call `load_complete` of the agents, the last one first: the model serves."""
        with self._turn:
            self._next = "unload"
            self._tell("load_complete", reversed(self._models))

    def fail(self) -> None:
        """Call `load_fail` of the agents whose `load` was called, the last one first."""
        with self._turn:
            self._tell("load_fail", reversed(self._models))

    def unload(self) -> None:
        """Call `unload` of the agents in their order. Do nothing before `complete` and on a second call."""
        with self._turn:
            if self._next == "unload":
                self._next = "unload_complete"
                self._tell("unload", self._models)

    def remove(self) -> None:
        self.unload()
        with self._turn:
            if self._next == "unload_complete":
                self._tell("unload_complete", reversed(self._models))
            self._next = ""
            for _, model in self._models:
                model.remove()

    def _tell(self, action: str, models: Iterable[tuple[RepositoryAgent, AgentModel]]) -> None:
        for agent, model in models:
            model.settle()
            try:
                getattr(agent, action)(model)
            except Exception as error:
                logger.exception(
                    "repository agent '%s' failed in %s of model '%s': %s",
                    agent.name,
                    action,
                    model.name,
                    _text_of(error),
                )


def _text_of(error: Exception) -> str:
    return error.message if isinstance(error, CoreError) else f"{type(error).__name__}: {error}"
