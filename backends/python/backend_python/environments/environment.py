"""The environments that models use, each with a template process from which child processes are forked."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING

from backend_python.environments import Unusable, choice
from backend_python.environments.settings import EnvironmentSettings
from backend_python.server.template import SharedTemplate
from core.config import ModelConfig

if TYPE_CHECKING:  # at run time only for models that have an environment
    from backend_python.environments.cache import Cache
    from backend_python.environments.interpreter import Interpreter


class Environment:
    """An interpreter and its template process. Models whose interpreters are equal share one Environment.

    template   process from which the child processes are forked
    """

    def __init__(self, interpreter: Interpreter):
        self.interpreter = interpreter
        self.template = SharedTemplate(interpreter.template)
        self.users = 0  # written under the lock of Environments
        self._lock = threading.Lock()
        self._checked = False

    def check(self, timeout_s: float) -> None:
        """Check once that models can run in the interpreter. Raises Unusable if they cannot."""
        with self._lock:
            if not self._checked:
                from backend_python.environments.interpreter import checked

                checked(self.interpreter, timeout_s)
                self._checked = True


class Environments:
    """The environments of a server. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._used: dict[Interpreter, Environment] = {}
        self._caches: dict[Path | None, Cache] = {}

    def open(
        self,
        config: ModelConfig,
        version: Path,
        given: dict[str, str],
        timeout_s: float,
        beside: Path | None = None,
    ) -> Environment | None:
        """Return the environment of a model; None if it runs with the server's packages. `release` it later.

        version     the version's directory
        given       the settings from --backend-config
        timeout_s   limit for the interpreter to report its version
        beside      folder of the backend that runs the model, None if it has none
        May take minutes: it unpacks an archive or installs requirements. Raises CoreError(INVALID) with the
        model, the parameter and the reason if there is no such environment.
        """
        settings = EnvironmentSettings(given)
        found = choice.chosen(config, version, settings, beside)
        if found is None:
            return None
        from backend_python.environments.cache import Cache
        from backend_python.environments.maker import Maker

        with self._lock:
            cache = self._caches.setdefault(settings.cache, Cache(settings.cache))
        try:
            maker = Maker(cache, settings, timeout_s)
            environment = self._of(maker.interpreter(found))
            try:
                environment.check(timeout_s)
            except BaseException:
                self.release(environment)
                raise
        except Unusable as problem:
            raise found.error(problem) from None
        return environment

    def release(self, environment: Environment) -> None:
        """Release an environment that `open` returned; the last release drops its template."""
        with self._lock:
            environment.users -= 1
            if environment.users:
                return
            del self._used[environment.interpreter]
        environment.template.drop()

    def close(self) -> None:
        """Release the unpacked and installed environments. Call it after the last model has ended."""
        with self._lock:
            caches, self._caches = list(self._caches.values()), {}
        for cache in caches:
            cache.close()

    def _of(self, interpreter: Interpreter) -> Environment:
        with self._lock:
            environment = self._used.get(interpreter)
            if environment is None:
                environment = self._used[interpreter] = Environment(interpreter)
                environment.template.keep()
            environment.users += 1
            return environment


environments = Environments()
