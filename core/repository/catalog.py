"""Catalog: all repositories as one, and what each of their models is now."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from dataclasses import replace

from core.backend import implements
from core.config import ModelConfig
from core.errors import CoreError, already_exists, internal, invalid
from core.repository.joined import JoinedFolder, ModelLocation
from core.repository.names import Key, is_folder_name, key_of, name_of, namespace_of
from core.repository.override import Override
from core.repository.reading import (
    list_model,
    read_config_override,
    read_files_override,
    read_folder,
)
from core.repository.source import Listing, ModelSource, Repository

logger = logging.getLogger("core")

DUPLICATE = "model appears in two or more repositories"

Survey = Mapping[str, "ModelSource | CoreError"]
"""name → what can be loaded, or why nothing can be."""


class Catalog:
    """The models of several repositories. Worker threads, but for what says otherwise.

    config_name    value of --model-config-name: `configs/<name>.pbtxt` goes before config.pbtxt
    needs_config   a model without config.pbtxt is an error (--disable-auto-complete-config)
    namespacing    several repositories may hold a model of one name: models are known by Key, not by name
    """

    def __init__(
        self,
        repositories: Iterable[Repository],
        *,
        config_name: str = "",
        needs_config: bool = False,
        namespacing: bool = False,
    ):
        self._repositories = list(repositories)
        self._joining = threading.Lock()  # held by who makes another list of them
        self._config_name = config_name
        self._needs_config = needs_config
        self._namespacing = namespacing
        # What each model was the last time: polling parses only the configurations that changed.
        self._last: dict[str, tuple[tuple[str, Listing], ModelSource]] = {}

    def check(self) -> None:
        """Raise CoreError if a repository cannot be read at all."""
        for repository in self._repositories:
            repository.check()

    @property
    def remote(self) -> bool:
        """Whether a repository has to look, or to be closed. Any thread."""
        return any(
            implements(each, Repository, method)
            for each in self._repositories
            for method in ("look", "close")
        )

    def look(self) -> None:
        """Let remote repositories see what there is now. Raises OSError when one cannot."""
        for repository in self._repositories:
            repository.look()

    def give_up(self) -> None:
        """Let remote repositories stop what they are fetching: the end has begun. Any thread."""
        for repository in self._repositories:
            repository.give_up()

    def close(self) -> None:
        """Give back what repositories have on this machine."""
        for repository in self._repositories:
            repository.close()

    def join(self, folder: JoinedFolder) -> set[str]:
        """Look there too from now on; the names of the models in it.

        Raises CoreError(ALREADY_EXISTS) for a folder that is a repository and for a name that a model has,
        CoreError(INVALID) where another model of the folder has the name of one that there is: of two
        neither could be loaded. CoreError(INTERNAL) when a repository cannot be listed now.
        """
        place = folder.place
        with self._joining:
            if any(each.location == place.location for each in self._repositories):
                raise already_exists(f"model repository '{place.location}' is already registered")
            try:
                names = folder.names()
                taken = names.union([place.name]).intersection(self._names())
            except OSError as error:
                raise internal(f"failed to list a model repository: {error}") from error
            if place.name in taken:
                raise already_exists(f"there is a model '{place.name}' already")
            if taken:
                found = "', '".join(sorted(taken))
                raise invalid(
                    f"'{place.location}' holds models whose names others have already: '{found}'; of two "
                    "models with one name neither can be loaded"
                )
            self._repositories = [*self._repositories, folder]  # others may go through the list
        return names

    def _names(self) -> set[str]:
        """Of all models, also of those that have joined and whose folders have vanished."""
        found = {each.place.name for each in self._repositories if isinstance(each, JoinedFolder)}
        return found.union(*(each.names() for each in self._repositories))

    def leave(self, place: ModelLocation) -> None:
        """Look there no more."""
        with self._joining:
            self._repositories = [
                each
                for each in self._repositories
                if not (isinstance(each, JoinedFolder) and each.place == place)
            ]
        for key, ((location, _), _) in self._last.copy().items():
            if location == place.location:
                self._last.pop(key, None)

    def key_of_place(self, place: ModelLocation) -> str:
        """What the model that has joined is known by. Any thread."""
        return key_of(place.location if self._namespacing else None, place.name)

    def names(self) -> dict[str, int]:
        """Every model's key with the number of repositories that hold it, in order. Any thread.

        Remote repositories tell what they saw last. Raises OSError when one cannot be listed now.
        """
        found: dict[str, int] = {}
        for repository in self._repositories:
            for name in repository.names():
                key = key_of(self._namespace(repository), name)
                found[key] = found.get(key, 0) + 1
        return dict(sorted(found.items()))

    def keys_of(self, name: str, override: Override | None = None) -> list[str]:
        """What a client means who loads by name: with namespaces the model of each repository.

        Raises CoreError(INTERNAL) when a repository cannot be listed now.
        """
        if not self._namespacing:
            return [name]
        if override is not None and override.files:
            return [Key("", name)]
        try:
            self.look()
            return [Key(each.location, name) for each in self._holders(name)] or [name]
        except OSError as error:
            raise internal(f"failed to list a model repository: {error}") from error

    def survey(self, key: str, override: Override | None = None) -> ModelSource:
        """What can be loaded under a key now.

        Raises CoreError(INVALID) when the name, the override or the configuration's name is wrong,
        CoreError(INTERNAL) when the repositories hold no such model or one that cannot be read.
        The caller of an override with files owns the source's directory.
        """
        name = name_of(key)
        if not is_folder_name(name):
            raise invalid(f"'{name}' is no name of a model")
        if override is not None and override.files:
            return self._in_namespace(read_files_override(name, override), "")
        holders = [
            (repository, listing)
            for repository in self._repositories
            if namespace_of(key) in (None, repository.location)
            and (listing := list_model(repository, name)) is not None
        ]
        if not holders:
            own = namespace_of(key)
            looked = [each.location for each in self._repositories if own in (None, each.location)]
            places = ", ".join(f"'{each}'" for each in looked)
            raise internal(f"there is no folder '{name}' in {places or 'any repository'}")
        if len(holders) > 1:
            raise internal(DUPLICATE)
        repository, listing = holders[0]
        if override is not None:
            found = read_config_override(repository, name, listing, override)
        else:
            found = self._survey_folder(name, repository, listing)
        return self._in_namespace(found, repository.location)

    def _namespace(self, repository: Repository) -> str | None:
        return repository.location if self._namespacing else None

    def _holders(self, name: str) -> list[Repository]:
        return [each for each in self._repositories if name in each.names()]

    def _in_namespace(self, source: ModelSource, namespace: str) -> ModelSource:
        """The source with its namespace, and its steps with theirs: Triton writes it into the configuration.

        A step is the model of that name in the same repository, else the only one that there is.
        """
        if not self._namespacing:
            return source
        config = ModelConfig()
        config.CopyFrom(source.config)
        for step in config.ensemble_scheduling.step:
            places = [each.location for each in self._holders(step.model_name)]
            own = namespace in places or len(places) != 1
            step.model_namespace = namespace if own else places[0]
        return replace(source, config=config, namespace=namespace)

    def survey_names(self, names: Iterable[str]) -> Survey:
        """Several models, and what they are composed of if they are ensembles.

        A model that cannot be read is an error in the result, and hides no other.
        """
        found: dict[str, ModelSource | CoreError] = {}
        waiting = list(names)
        while waiting:
            name = waiting.pop(0)
            if name not in found:
                source = found[name] = self._try(name)
                waiting.extend(source.steps if isinstance(source, ModelSource) else ())
        return found

    def survey_all(self) -> Survey:
        """Every model of the repositories. Raises OSError when one cannot be listed now."""
        with ExitStack() as looks:
            for repository in self._repositories:
                looks.enter_context(repository.one_look())
            return self.survey_names(self.names())

    def _try(self, name: str) -> ModelSource | CoreError:
        try:
            return self.survey(name)
        except CoreError as error:
            return error
        except OSError as error:
            return internal(f"failed to list a model repository: {error}")
        except Exception as error:  # whatever one folder holds, the others must be seen
            logger.exception("looking at model '%s' failed", name)
            return internal(f"{type(error).__name__}: {error}")

    def _survey_folder(self, name: str, repository: Repository, listing: Listing) -> ModelSource:
        key, seen = key_of(self._namespace(repository), name), (repository.location, listing)
        last = self._last.get(key)
        if last is not None and last[0] == seen:
            return last[1]
        source = read_folder(repository, name, listing, self._config_name, self._needs_config)
        self._last[key] = (seen, source)
        return source
