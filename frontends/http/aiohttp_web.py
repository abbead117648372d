"""aiohttp's server, without the time and memory that its client takes: import `web` from here.

`import aiohttp` imports the client too, with its tables, and makes the client's TLS contexts, which
read all certificates of the system. A server that never asks anybody needs none of it. So the package
is there at once, and what its `__init__` does happens when somebody asks for one of its names: a model
that uses the client finds everything as it should be.
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
    """The package aiohttp before its `__init__` has run. Any thread."""

    _running = False  # its __init__, on the thread that has the turn

    def __getattr__(self, name: str) -> Any:
        """A submodule, imported without the rest, or a name that `__init__` brings."""
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
            self.__class__ = ModuleType  # type: ignore[assignment]  # it is a package like any other from here on
        finally:
            del self._running  # one whose __init__ failed is asked again


def _put_package() -> None:
    """Make aiohttp importable without its `__init__`, unless somebody has imported it before."""
    spec = importlib.util.find_spec(_NAME)
    if _NAME in sys.modules or spec is None:
        return
    package = importlib.util.module_from_spec(spec)
    package.__class__ = _Package
    vars(package)["__version__"] = metadata.version(_NAME)  # submodules ask for it
    sys.modules[_NAME] = package


_put_package()

from aiohttp import web  # noqa: E402  (the package has to be there)
from aiohttp.http import HttpVersion11, WSCloseCode  # noqa: E402

__all__ = ["HttpVersion11", "WSCloseCode", "web"]
