"""The entry point `python` of core.backends, and the backends of folders that it runs."""

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

OF_PROCESSES = (FORCE_CPU, EXECUTE_TIMEOUT, WORKER)
OF_MODELS = (
    *OF_PROCESSES,
    CHECK_OUTPUTS,
    PATH,
    REQUIREMENTS,
    "*",
)  # a model.py reads what it likes


class PythonBackend(core.Backend):
    """Keeps the process that children are forked from as long as there may be more of them."""

    processes = True

    def open(self) -> None:
        template.keep()

    def close(self) -> None:
        template.drop()

    def derive(self, name: str, folder: Path, runtime: str) -> core.Backend:
        """The backend of models that a model.py outside of their folders runs."""
        derived = PythonBackend(
            model=PythonModel,
            instance=PythonInstance,
            complete=complete,
            known_parameters=OF_MODELS,
        )
        derived.name, derived.based_on = name, self.name
        derived.folder, derived.runtime = folder, runtime
        return derived

    def keep_apart(self, other: core.Backend) -> core.Backend:
        """The backend of models of another one, each instance of them in a process."""
        made = PythonBackend(
            model=PythonModel,
            instance=PythonInstance,
            complete=complete if other.complete is not None else None,
            instances=other.instances,
            known_parameters=OF_PROCESSES,
            known_settings=backend.known_settings,
        )
        made.name, made.based_on, made.apart = other.name, self.name, other
        return made

    @core.hookimpl
    def core_server_stopping(self, server: object) -> None:
        """What was unpacked and installed stays while models come and go."""
        environments.close()


backend = PythonBackend(
    model=PythonModel,
    instance=PythonInstance,
    complete=complete,
    known_parameters=OF_MODELS,
    known_settings=(*SETTINGS, CACHE, MOST, INSTALL),
)
