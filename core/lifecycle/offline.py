"""Offline: a model's folder as a server would load it, without a server.

    folder ─► Catalog ─► ModelSource ─► backend's complete() ─► [OfflineModel]

For `python -m core config` and `python -m core explain`. Main thread; may block.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path

from core import config as configuration
from core import plugins
from core.backend import Backend
from core.config import ModelConfig, Signature
from core.devices import gpus
from core.errors import CoreError, invalid, not_found
from core.lifecycle import policy
from core.lifecycle.version import ModelVersion, settled_config
from core.options import Options
from core.repository import Catalog, FolderRepository, ModelSource
from core.repository.agents import Treated
from core.repository.agents.known import find_agent


@dataclass(frozen=True)
class OfflineModel:
    """One version, ready to be loaded.

    config, signature   completed, normalised and validated
    backend             closed again; None for an ensemble
    """

    version: ModelVersion
    config: ModelConfig
    signature: Signature
    backend: Backend | None


def offline_model(folder: Path, options: Options, number: int | None = None) -> OfflineModel:
    """The version of that number, or the newest that the model's version policy wants.

    folder   of the model, with config.pbtxt and the folders of versions
    Raises CoreError with the text that a load would end with, or for a folder that holds no model.
    """
    source = _source(folder, options)
    if not source.agents:
        return _offline(source, options, number)
    directory = Treated(source, partial(find_agent, directory=options.repoagent_directory))
    try:
        return _offline(directory.treat(), options, number)
    finally:
        directory.fail()  # nothing is loaded
        directory.remove()


def _offline(source: ModelSource, options: Options, number: int | None) -> OfflineModel:
    if not source.versions:
        raise invalid(f"'{source.directory.path}' holds no folder of a version, such as 1")
    configuration.validate_source(source.config)
    version = ModelVersion(source, _number(source, number))
    if source.config.HasField("ensemble_scheduling"):
        config = settled_config(version, None, options, gpus())
        return OfflineModel(version, config, _signature(version, config), None)
    backend = plugins.backend(source.config.backend, options.backend_directory)
    backend.open()
    try:
        config = settled_config(version, backend, options, gpus())
    finally:
        backend.close()
    return OfflineModel(version, config, _signature(version, config), backend)


def _source(folder: Path, options: Options) -> ModelSource:
    folder = folder.absolute()
    if not folder.is_dir():
        raise not_found(f"there is no folder '{folder}'; give that of one model")
    repository = FolderRepository(str(folder.parent))
    catalog = Catalog(
        [repository],
        config_name=options.model_config_name,
        needs_config=options.disable_auto_complete_config,
    )
    try:
        source = catalog.survey(folder.name)
    except CoreError as error:
        raise _better(folder, error) from error
    if not source.versions and not source.agents:
        raise _better(folder, invalid(f"'{folder}' holds no folder of a version, such as 1"))
    return source


def _better(folder: Path, error: CoreError) -> CoreError:
    """The error, or that the folder is a whole repository."""
    models = sorted(each.parent.name for each in folder.glob("*/config.pbtxt"))
    if not models or (folder / "config.pbtxt").exists():
        return error
    return invalid(f"'{folder}' is a model repository; give one of its models: {', '.join(models)}")


def _number(source: ModelSource, number: int | None) -> int:
    found = ", ".join(map(str, source.versions))
    if number is not None:
        if number not in source.versions:
            raise not_found(f"model '{source.name}' has no version {number}; there are {found}")
        return number
    wanted = policy.wanted_versions(source.config, source.versions)
    if not wanted:
        raise invalid(
            f"the version policy of model '{source.name}' wants none of its versions: {found}"
        )
    return max(wanted)


def _signature(version: ModelVersion, config: ModelConfig) -> Signature:
    return configuration.signature_of(config, version.directory, version.version)
