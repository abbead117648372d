"""aiohttp's server without the import time and memory of its client: import `web` from here.

`import aiohttp` also imports the client with its tables. The client makes TLS contexts, which read all
certificates of the system. A server that sends no requests needs none of it. So this module makes the
package importable at once, without its `__init__`. Submodules, such as `web`, are imported without it, too.
`__init__` runs when a name that it defines is first used, so that a model with a client finds all of it.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
import threading
from importlib import metadata
from types import ModuleType
from typing import Any

_NAME = "aiohttp"
_turn = threading.RLock()


class _Package(ModuleType):
    """Stands for the package aiohttp until a name that only its `__init__` can define is used. Thread-safe.

    Such a use runs `__init__`, and makes this object an ordinary package. A submodule is imported without it.
    """

    _running = False  # its __init__ runs, on the thread that holds the lock

    def __getattr__(self, name: str) -> Any:
        """Return a submodule, which is imported without `__init__`, or what `__init__` defines by that name.

        Run `__init__` first in the second case, unless it has run. Raises AttributeError for an unknown name.
        """
        if not name.startswith("__") and importlib.util.find_spec(f"{_NAME}.{name}") is not None:
            return importlib.import_module(f"{_NAME}.{name}")
        with _turn:  # others wait until the names are there
            if type(self) is _Package and not self._running:
                self._run_init()
        try:
            return vars(self)[name]
        except KeyError:
            raise AttributeError(f"module '{_NAME}' has no attribute '{name}'") from None

    def __dir__(self) -> list[str]:
        self.__getattr__("__all__")
        return dir(self)

    def _run_init(self) -> None:
        assert self.__spec__ is not None and self.__spec__.loader is not None
        self._running = True
        try:
            self.__spec__.loader.exec_module(self)
            self.__class__ = ModuleType  # type: ignore[assignment]  # now an ordinary package
        finally:
            del self._running  # if __init__ failed, the next use runs it again


def _put_package() -> None:
    """Put a _Package for aiohttp into sys.modules, unless aiohttp is imported already or not installed."""
    spec = importlib.util.find_spec(_NAME)
    if _NAME in sys.modules or spec is None:
        return
    package = importlib.util.module_from_spec(spec)
    package.__class__ = _Package
    vars(package)["__version__"] = metadata.version(_NAME)  # submodules read it
    sys.modules[_NAME] = package


_put_package()

from aiohttp import web  # noqa: E402  (the package has to be there)
from aiohttp.http import HttpVersion10, HttpVersion11, WSCloseCode  # noqa: E402

__all__ = ["HttpVersion10", "HttpVersion11", "WSCloseCode", "web"]
