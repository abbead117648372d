"""Environments that models use, each with a template that the children of its models are forked from."""

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
    """One interpreter that models can run in; models that have the same share it.

    template   what children are forked from
    """

    def __init__(self, interpreter: Interpreter):
        self.interpreter = interpreter
        self.template = SharedTemplate(interpreter.template)
        self.users = 0  # written under the lock of Environments
        self._lock = threading.Lock()
        self._checked = False

    def check(self, timeout_s: float) -> None:
        """Check once that models can run in it. Raises Unusable if not."""
        with self._lock:
            if not self._checked:
                from backend_python.environments.interpreter import checked

                checked(self.interpreter, timeout_s)
                self._checked = True


class Environments:
    """The environments of a server. Any thread."""

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
        """The environment of a model, None if it runs with the server's packages; `release` it.

        version     the version's directory
        given       what --backend-config says
        timeout_s   for an interpreter to say what it is
        beside      the folder of the backend that runs the model, if it is one
        May take minutes: an archive is unpacked, requirements are installed. CoreError(INVALID), which
        names the model, what it wants and why there is no such environment.
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
        """One user less; after the last its template ends."""
        with self._lock:
            environment.users -= 1
            if environment.users:
                return
            del self._used[environment.interpreter]
        environment.template.drop()

    def close(self) -> None:
        """Let go of what was unpacked and installed. After the last model."""
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
