"""Reads the ModelSource of a folder or of a load request, with its configuration. Worker threads."""

from __future__ import annotations

from core import config as configuration
from core.config import ModelConfig
from core.errors import CoreError, internal, invalid
from core.plugins import ask, formats
from core.repository.folder import FolderRepository
from core.repository.joined import JoinedFolder
from core.repository.override import Override
from core.repository.source import (
    Listing,
    ModelDirectory,
    ModelSource,
    Repository,
    first_version_entries,
    is_flat,
    shared_stamp,
    version_stamps,
)


def list_model(repository: Repository, name: str) -> Listing | None:
    """Return the listing of a model's folder; None without one. Raises CoreError(INTERNAL) on a failure."""
    try:
        return repository.listing(name)
    except (OSError, ValueError, RecursionError) as error:
        raise internal(f"failed to read '{name}' in '{repository.location}': {error}") from error


def read_folder(
    repository: Repository, name: str, listing: Listing, config_name: str, needs_config: bool
) -> ModelSource:
    """Return the ModelSource of a folder; `config_name` and `needs_config` are those of Catalog.

    Raises CoreError(INTERNAL) for a wrong configuration, a needed one that is missing, and unknown files.
    """
    path = f"configs/{config_name}.pbtxt"
    if not config_name or path not in listing:
        path = "config.pbtxt"
    directory = _directory(repository, name)
    origin = f"{directory.address}/{path}"
    config = ModelConfig()
    if path in listing:
        try:
            config = configuration.parse_text(repository.read_text(name, path), origin)
        except CoreError as error:
            raise internal(error.message) from error
        except (OSError, ValueError) as error:
            raise internal(f"failed to read {origin}: {error}") from error
    elif needs_config:
        raise internal(f"failed to open text file for read {origin}: No such file or directory")
    folder = ""
    if isinstance(repository, JoinedFolder) and repository.place.name == name:
        config.name, folder = name, repository.place.folder
    return _source(name, listing, directory, config, listing.get(path, ""), False, folder)


def read_config_override(
    repository: Repository, name: str, listing: Listing, override: Override
) -> ModelSource:
    """Return the ModelSource of a folder, with the configuration of a load request.

    Raises CoreError: INVALID for a configuration that is wrong, INTERNAL if the machine has no space.
    """
    config = _parse_override(name, override)
    return _source(name, listing, _directory(repository, name), config, "", True)


def read_files_override(name: str, override: Override) -> ModelSource:
    """Return the ModelSource of a load request with files: they are in a new directory that the caller owns.

    Raises CoreError: INVALID for a wrong configuration or files that cannot be written, or as Override.write.
    """
    config = _parse_override(name, override)
    try:
        directory = override.write()
    except (OSError, ValueError) as error:
        raise invalid(f"failed to write the files for model '{name}': {error}") from error
    try:
        listing = FolderRepository(str(directory.path.parent)).listing(directory.path.name)
        return _source(name, listing or {}, directory, config, "", True)
    except BaseException:
        directory.remove()
        raise


def fill_from(listing: Listing, config: ModelConfig, folder: str, overridden: bool) -> None:
    """Fill in a configuration from the file names of the model's folder, in place.

    Raises CoreError if configuration, files and `folder`, the folder's name, do not determine one backend:
    INVALID if a client sent the configuration, else INTERNAL.
    """
    try:
        configuration.fill(config, folder, formats(), first_version_entries(listing))
    except CoreError as error:
        raise error if overridden else internal(error.message) from error


def _directory(repository: Repository, name: str) -> ModelDirectory:
    try:
        return repository.directory(name)
    except OSError as error:  # this machine has no space for it
        raise internal(str(error)) from error


def _parse_override(name: str, override: Override) -> ModelConfig:
    try:
        return configuration.parse_json(override.config, f"parameter 'config' for model '{name}'")
    except CoreError as error:
        raise invalid(f"Invalid config override: {error.message}") from error


def _source(
    name: str,
    listing: Listing,
    directory: ModelDirectory,
    config: ModelConfig,
    config_stamp: str,
    overridden: bool,
    folder: str = "",
) -> ModelSource:
    """Return a ModelSource. Fill in `config`, or only its name if it has agents, which may change the files.

    folder   folder name that may determine its backend, if it is not the model's name
    Raises CoreError if `config` has a name other than `name`, or as `fill_from`.
    """
    if config.name and config.name != name:
        raise (invalid if overridden else internal)(
            f"unexpected directory name '{name}' for model '{config.name}', "
            "directory name must equal model name"
        )
    for step in config.ensemble_scheduling.step:
        step.model_namespace = ""
    if config.model_repository_agents.agents:
        config.name = name
    else:
        try:
            fill_from(listing, config, folder or name, overridden)
        except CoreError as error:
            hint = "" if overridden else _layout(name, directory, listing)
            raise CoreError(error.kind, error.message + hint) from error
    versions = version_stamps(listing)
    return ModelSource(
        name=name,
        directory=directory,
        config=config,
        versions=versions,
        shared=shared_stamp(listing),
        config_stamp=config_stamp,
        overridden=overridden,
        flat=is_flat(listing),
        folder=folder,
        hint="" if versions or overridden else _layout(name, directory, listing),
    )


def _layout(name: str, directory: ModelDirectory, listing: Listing) -> str:
    """Return what plugins find wrong with a model's folder, as the end of an error; "" if nothing."""
    hint = ask("core_explain_layout", name=name, folder=directory.address, listing=listing)
    return f". Wrong layout: {hint}" if hint else ""
