"""A model with one instance and no server around it: for a process that runs nothing else.

Who has given a model a process of its own uses it there; what core does with requests before and after
an execution is done where they came in. One thread, unless something else is said.
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
    """Write what the backend knows of a model's files into its configuration.

    path       the version's directory
    settings   what --backend-config says for the backend
    Raises what its import, open and complete raise.
    """
    backend = _opened(config, settings)
    try:
        if backend.complete is not None:
            backend.complete(config, path, backend)
    finally:
        backend.close()


class ModelAlone:
    """A version of a model and the instance of one of its seats, opened in the order that core.backend tells.

    config      completed and normalised
    settings    what --backend-config says for the backend
    path        the version's directory
    directory   the model's directory
    seat        name and device of the instance, as the configuration's groups ask for them
    loop        for an instance that wants one; run it while the instance executes
    Raises what the backend raises, after it has given back what was opened.
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
                # It is bound to its cores already: whoever made the process has done so.
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
        """The way back; each step is taken, also when one before it raises."""
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
