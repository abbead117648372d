"""Catalog: a single view of all repositories and the current state of their models."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from copy import deepcopy
from dataclasses import replace

from core.backend import implements
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
    """The models of several repositories. Worker threads, except where stated.

    config_name    value of --model-config-name: `configs/<name>.pbtxt` takes precedence over config.pbtxt
    needs_config   a model without config.pbtxt is an error (--disable-auto-complete-config)
    namespacing    several repositories may hold a model of one name: a Key identifies a model, not a name
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
        self._joining = threading.Lock()  # held while the list of repositories is replaced
        self._config_name = config_name
        self._needs_config = needs_config
        self._namespacing = namespacing
        # Last source of each model: polling parses only changed configurations.
        self._last: dict[str, tuple[tuple[str, Listing], ModelSource]] = {}

    def check(self) -> None:
        """Raise CoreError if a repository cannot be read at all."""
        for repository in self._repositories:
            repository.check()

    @property
    def remote(self) -> bool:
        """Return whether any repository implements `look` or `close`. Any thread."""
        return any(
            implements(each, Repository, method)
            for each in self._repositories
            for method in ("look", "close")
        )

    def look(self) -> None:
        """Refresh the listings of remote repositories. Raises OSError if one cannot be read."""
        for repository in self._repositories:
            repository.look()

    def give_up(self) -> None:
        """Stop the fetches of remote repositories at shutdown. Any thread."""
        for repository in self._repositories:
            repository.give_up()

    def close(self) -> None:
        """Close every repository: a remote one removes the files that it has fetched."""
        for repository in self._repositories:
            repository.close()

    def join(self, folder: JoinedFolder) -> set[str]:
        """Add a folder to the repositories; return the names of its models.

        Raises CoreError(ALREADY_EXISTS) for a folder that is a repository already, and for a name that is in
        use. Raises CoreError(INVALID) if another model of the folder has a name that is in use: neither of
        the two could be loaded. Raises CoreError(INTERNAL) if a repository cannot be listed now.
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
            self._repositories = [*self._repositories, folder]  # others may iterate the old list
        return names

    def _names(self) -> set[str]:
        """Return the names of all models, also of joined models without a folder. Raises OSError."""
        found = {each.place.name for each in self._repositories if isinstance(each, JoinedFolder)}
        return found.union(*(each.names() for each in self._repositories))

    def leave(self, place: ModelLocation) -> None:
        """Remove a joined folder from the repositories."""
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
        """Return the key of a joined model. Any thread."""
        return key_of(place.location if self._namespacing else None, place.name)

    def names(self) -> dict[str, int]:
        """Return every model's key with the number of repositories that hold it, sorted. Any thread.

        Remote repositories return their last listing. Raises OSError if one cannot be listed now.
        """
        found: dict[str, int] = {}
        for repository in self._repositories:
            for name in repository.names():
                key = key_of(self._namespace(repository), name)
                found[key] = found.get(key, 0) + 1
        return dict(sorted(found.items()))

    def keys_of(self, name: str, override: Override | None = None) -> list[str]:
        """Return the keys for a load: [name]; with namespaces one for each repository with it, else [name].

        With them an override with files has its own key. CoreError(INTERNAL) if a repository is unreadable.
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
        """Return the source that can be loaded under a key now.

        Raises CoreError: INVALID if the name or the override is wrong; UNAVAILABLE if its files go
        over the limit; INTERNAL if the repositories hold no such model, several, or a wrong one.
        The caller of an override with files owns the source's directory.
        """
        name = name_of(key)
        if not is_folder_name(name):
            raise invalid(f"'{name}' is no name of a model")
        if override is not None and override.files:
            return self._in_namespace(read_files_override(name, override), "")
        own = namespace_of(key)
        looked = [each for each in self._repositories if own in (None, each.location)]
        listed = [(each, list_model(each, name)) for each in looked]
        holders = [(each, listing) for each, listing in listed if listing is not None]
        if not holders:
            places = ", ".join(f"'{each.location}'" for each in looked)
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
        """Return the source with namespaces for it and its steps; unchanged without --model-namespacing.

        A step gets `namespace`; that of another repository if only that one has the step's model.
        """
        if not self._namespacing:
            return source
        config = deepcopy(source.config)
        for step in config.ensemble_scheduling.step:
            places = [each.location for each in self._holders(step.model_name)]
            own = namespace in places or len(places) != 1
            step.model_namespace = namespace if own else places[0]
        return replace(source, config=config, namespace=namespace)

    def survey_names(self, names: Iterable[str]) -> Survey:
        """Return a survey of these models and, for ensembles, of the models that they are composed of.

        For a model that cannot be read the survey holds the error; others are not affected.
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
        """Return a survey of all models. Raises OSError if a repository cannot be listed now."""
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
        except Exception as error:  # a bad folder must not hide the others
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
