"""The entry points: the backend `python`, and the process host for backends that are folders or isolated."""

from pathlib import Path

import core
from backend_python.environments.choice import PATH, REQUIREMENTS
from backend_python.environments.environment import environments
from backend_python.environments.settings import CACHE, INSTALL, MOST
from backend_python.server.complete import complete
from backend_python.server.instance import PythonInstance
from backend_python.server.model import (
    CHECK_OUTPUTS,
    EXECUTE_TIMEOUT,
    FORCE_CPU,
    WORKER,
    PythonModel,
)
from backend_python.server.settings import SETTINGS
from backend_python.server.template import template
from core.plugins import HostedBackend

NAME = "python"

KNOWN_SETTINGS = (*SETTINGS, CACHE, MOST, INSTALL)
OF_PROCESSES = (FORCE_CPU, EXECUTE_TIMEOUT, WORKER)
OF_MODELS = (*OF_PROCESSES, CHECK_OUTPUTS, PATH, REQUIREMENTS, "*")  # a model.py reads any


class _EndsEnvironments:
    @core.hookimpl
    def core_server_stopping(self, server: object) -> None:
        """Close the environments at the end of the server; they stay while models load and unload."""
        environments.close()


class PythonBackend(HostedBackend, _EndsEnvironments):
    """Keeps the template process, from which child processes are forked, between `open` and `close`."""

    def open(self) -> None:
        template.keep()

    def close(self) -> None:
        template.drop()


class PythonProcessHost(_EndsEnvironments):
    """Runs in child processes: the models of a folder's model.py, and models of other backends."""

    def from_folder(self, name: str, file: Path) -> HostedBackend:
        made = PythonBackend(
            model=PythonModel,
            instance=PythonInstance,
            complete=complete,
            known_parameters=OF_MODELS,
        )
        made.name, made.based_on, made.file = name, NAME, file
        return made

    def isolate(self, backend: core.Backend) -> HostedBackend:
        made = PythonBackend(
            model=PythonModel,
            instance=PythonInstance,
            complete=complete if backend.complete is not None else None,
            instances=backend.instances,
            known_parameters=OF_PROCESSES,
            known_settings=KNOWN_SETTINGS,
        )
        made.name, made.based_on, made.isolated = backend.name, NAME, backend
        return made


backend = PythonBackend(
    model=PythonModel,
    instance=PythonInstance,
    complete=complete,
    known_parameters=OF_MODELS,
    known_settings=KNOWN_SETTINGS,
)

process_host = PythonProcessHost()
