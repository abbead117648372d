"""ModelAlone: a model with one instance and without a server, for a process that runs nothing else.

Child processes of models and `python -m core config` use it. The server's process does all other work of a
request, before and after the execution. Call from one thread.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

from core import config as configuration
from core import plugins
from core.backend import Backend, Device
from core.config import ModelConfig
from core.pipeline.instances.runner import open_instance
from core.pipeline.instances.specs import instance_specs
from core.system.host_policy import HostPolicies


def complete_alone(config: ModelConfig, path: Path, settings: Mapping[str, str]) -> None:
    """Let the backend complete a configuration from the model's files, in place.

    path       the version's directory
    settings   settings of --backend-config for the backend
    Raises what the import, `open` and `complete` of the backend raise.
    """
    backend = _opened(config, settings)
    try:
        if backend.complete is not None:
            backend.complete(config, path, backend)
    finally:
        backend.close()


class ModelAlone:
    """A model version and one of its instances, opened in the order that core.backend defines.

    config      completed and normalised
    settings    settings of --backend-config for the backend
    path        the version's directory
    directory   the model's directory
    seat        name and device of the instance, from the instance groups of the configuration
    loop        event loop for the instance; run it while the instance executes
    Raises what the backend raises, after it has closed what was opened.
    """

    def __init__(
        self,
        config: ModelConfig,
        settings: Mapping[str, str],
        *,
        name: str,
        version: int,
        path: Path,
        directory: Path,
        seat: tuple[str, Device],
        loop: asyncio.AbstractEventLoop,
    ):
        self.signature = configuration.signature_of(config, directory, version)
        self.backend = _opened(config, settings)
        self._model = model = self.backend.model()
        model.name, model.version, model.path, model.directory = name, version, path, directory
        model.config, model.backend, model.server = config, self.backend, None
        try:
            model.load()
            try:
                # No host policies: the parent process has bound this process to its cores.
                seats = instance_specs(config, HostPolicies({}))
                found = next(each for each in seats if (each.name, each.device) == seat)
                self.instance = found.instance(model)
                self.instance.loop = loop
                self.execute = open_instance(self.instance)
            except BaseException:
                model.unload()
                raise
        except BaseException:
            self.backend.close()
            raise

    def close(self) -> None:
        """Close instance, model and backend; each step runs even if the one before it raises."""
        try:
            self.instance.close()
        finally:
            try:
                self._model.unload()
            finally:
                self.backend.close()


def _opened(config: ModelConfig, settings: Mapping[str, str]) -> Backend:
    backend = plugins.backend(config.backend)
    backend.config = dict(settings)
    backend.open()
    return backend
