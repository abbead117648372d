"""A model with one instance and without a server, for a process that runs nothing else.

The server does what comes before and after an execution. Not thread-safe: use it from one thread.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

from core import config as configuration
from core import plugins
from core.backend import Backend, Device
from core.config import ModelConfig
from core.errors import call_author
from core.pipeline.instances.runner import open_instance
from core.pipeline.instances.specs import instance_specs
from core.system.host_policy import HostPolicies


class ModelAlone:
    """A version of a model and one of its instances, opened in the order that core.backend gives.

    config      completed and normalised
    settings    what --backend-config says for the backend
    path        the version's directory
    directory   the model's directory
    seat        name and device of the instance, from the configuration's groups
    loop        for an instance that uses one; run it while the instance executes

    If a call of the backend raises, what was opened is closed again, and the error is raised.
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
        with ExitStack() as opened:
            self.backend = opened_backend(config, settings)
            opened.callback(self.backend.close)
            model = self.backend.model()
            model.name, model.version, model.path, model.directory = name, version, path, directory
            model.config, model.backend, model.server = config, self.backend, None
            call_author(self.backend.name, "load", model.load)
            opened.callback(model.unload)
            # The process that made this one has bound it to its cores already.
            specs = instance_specs(config, HostPolicies({}))
            found = next(each for each in specs if (each.name, each.device) == seat)
            self.instance = found.instance(model)
            self.instance.loop = loop
            self.execute = open_instance(self.instance)
            opened.callback(self.instance.close)
            self._opened = opened.pop_all()

    def close(self) -> None:
        """Close instance, unload model, close backend, each even if one raises. Then raise the last error."""
        self._opened.close()


def opened_backend(config: ModelConfig, settings: Mapping[str, str]) -> Backend:
    """Return the backend of a configuration, opened: close it. Raises CoreError for any of its exceptions."""
    backend = plugins.backend(config.backend)
    backend.config = dict(settings)
    call_author(backend.name, "open", backend.open)
    return backend
