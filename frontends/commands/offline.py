"""Offline: reads a model's folder as a server does to load it, without a server.

    folder ─► Catalog ─► ModelSource ─► backend's complete() ─► [OfflineModel] ─► try_model, try_ensemble

For `core config`, `core explain`, `core init`, `core check --load`. Main thread; may block.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from core import config as configuration
from core import plugins
from core.backend import Backend
from core.config import ModelConfig, Signature
from core.devices.visible import gpus
from core.errors import CoreError, invalid, not_found
from core.lifecycle import policy
from core.lifecycle.settling import settled_config
from core.lifecycle.version import ModelVersion
from core.options import Options
from core.repository import Catalog, FolderRepository, ModelSource
from core.repository.agents import Treated
from core.repository.agents.known import find_agent
from core.request import NEWEST
from frontends.commands.trial import try_ensemble, try_model


@dataclass(frozen=True)
class OfflineModel:
    """One model version whose files are read as for a load. The version is not loaded, or released again.

    If repository agents have replaced its folder, `version` has the path of theirs, which is removed already.
    """

    version: ModelVersion
    config: ModelConfig  # completed, normalised and validated
    signature: Signature
    backend: Backend | None  # already closed; None for an ensemble


def offline_model(
    folder: Path, options: Options, number: int | None = None, *, tried: bool = False
) -> OfflineModel:
    """Read a model's folder; return version `number`. None stands for the newest that the policy selects.

    folder   of the model, with config.pbtxt and the folders of versions
    tried    whether to load the version once, and then release it; for an ensemble, to load the models of
             its steps, which lie beside `folder`

    Raises CoreError for a folder without a model or without that version, and with a server's text for a
    configuration that a server refuses. The code of a backend, and with `tried` that of a model, may raise
    anything.
    """
    return _Offline(options, tried).model(folder, number)


def wanted_versions(model: OfflineModel) -> list[int]:
    """Return the versions that the version policy of the model selects, in ascending order."""
    source = model.version.source
    return sorted(policy.wanted_versions(source.config, source.versions))


class _Offline:
    """Reads a model for one command and, if `tried`, the models that an ensemble calls.

    It remembers the ensembles whose steps it reads, to refuse ensembles that call each other in a circle.
    """

    def __init__(self, options: Options, tried: bool):
        self._options = options
        self._tried = tried
        self._way: list[str] = []  # ensembles whose steps are being read, outermost first
        self._repository = Path()

    def model(self, folder: Path, number: int | None) -> OfflineModel:
        self._repository = folder.absolute().parent
        source = _source(folder, self._options)
        if not source.agents:
            return self._found(source, number)
        find = partial(find_agent, directory=self._options.repoagent_directory)
        directory = Treated(source, find)
        try:
            return self._found(directory.treat(), number)
        finally:
            directory.fail()  # nothing is loaded
            directory.remove()

    def _found(self, source: ModelSource, number: int | None) -> OfflineModel:
        found = _offline(source, self._options, number)
        if not self._tried:
            return found
        if found.backend is not None:
            try_model(found.version, found.config, found.backend)
            return found
        if source.name in self._way:
            way = " -> ".join([*self._way, source.name])
            raise invalid(f"circular dependency between ensembles: {way}")
        self._way.append(source.name)
        try:
            signature = try_ensemble(found.config, found.signature, self._step)
        finally:
            self._way.pop()
        return replace(found, signature=signature)

    def _step(self, name: str, number: int) -> Signature:
        """Read and load the model that a step calls; return its signature.

        name     of the model; its folder lies beside that of the ensemble
        number   NEWEST for the newest version that the model's version policy selects
        Raises CoreError if there is no such model, or its version policy does not select the version, and
        what a load raises.
        """
        if Path(name).name != name:
            raise not_found(f"'{name}' is no name of a model")
        found = self.model(self._repository / name, None if number == NEWEST else number)
        source = found.version.source
        if found.version.version not in policy.wanted_versions(source.config, source.versions):
            raise not_found(f"its version policy does not want version {found.version.version}")
        return found.signature


def _offline(source: ModelSource, options: Options, number: int | None) -> OfflineModel:
    if not source.versions:
        raise invalid(f"'{source.directory.path}' holds no folder of a version, such as 1")
    configuration.validate_source(source.config, plugins.formats())
    number = _number(source, number)
    version = ModelVersion(source, number)
    if source.config.HasField("ensemble_scheduling"):
        config = settled_config(source, number, None, options, gpus())
        return OfflineModel(version, config, _signature(version, config), None)
    backend = plugins.backend(source.config.backend, options.backend_directory)
    backend.open()
    try:
        config = settled_config(source, number, backend, options, gpus())
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
    """Return `error`, or an error that lists the models in `folder` if it is a model repository.

    It counts as one if it has no config.pbtxt, and a folder in it has one.
    """
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
