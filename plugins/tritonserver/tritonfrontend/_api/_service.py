"""Service: one frontend of core, opened and closed by the program.

KServeHttp, KServeGrpc, Metrics ─► [Service] ─► EmbeddedServer.open ─► frontend
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any, ClassVar

import tritonserver
from tritonserver._api._errors import raised_as_triton
from tritonserver_core.embedded import EmbeddedServer

from core.frontend import Frontend


class ServiceOptions:
    """Base of the options. Their dataclasses check types and ranges when they are made.

    LIMITS   name → (least, greatest) of a number
    """

    LIMITS: ClassVar[dict[str, tuple[int, int]]] = {}

    def __post_init__(self) -> None:
        """Raise InvalidArgumentError for a value of another type than the default, or out of range."""
        for each in fields(self):  # type: ignore[arg-type]
            value: Any = getattr(self, each.name)
            wanted: Any = type(each.default)
            if not isinstance(value, wanted) or (wanted is int and isinstance(value, bool)):
                raise tritonserver.InvalidArgumentError(
                    f"{each.name}={value!r} is a {type(value).__name__}, expected {wanted.__name__}"
                )
            low, high = self.LIMITS.get(each.name, (0, 2**63 - 1))
            if isinstance(value, int) and not low <= value <= high:
                raise tritonserver.InvalidArgumentError(
                    f"{each.name}={value} is out of range; give a number from {low} to {high}"
                )

    def as_core(self) -> dict[str, Any]:
        """Return the options by core's names."""
        raise NotImplementedError


class Service:
    """A port of a server. `start` opens it, `stop` or the server's stop closes it; it may start again.

    options   None for the defaults
    Any thread. Raises InvalidArgumentError if the server is not started, or for options of another class.
    """

    Options: ClassVar[type[Any]] = ServiceOptions
    FRONTEND: ClassVar[str]  # name of the entry point

    def __init__(self, server: tritonserver.Server, options: Any = None):
        self._server: EmbeddedServer = server._running()
        if options is None:
            options = self.Options()
        if not isinstance(options, self.Options):
            raise tritonserver.InvalidArgumentError(
                "Incorrect type for options. options argument must be of type "
                f"{type(self).__name__}.Options, got {type(options).__name__}"
            )
        self._options: ServiceOptions = options
        self._opened: Frontend | None = None

    def start(self) -> None:
        """Listen. Raises AlreadyExistsError if it listens already, UnavailableError if it cannot."""
        if self._is_open:
            raise tritonserver.AlreadyExistsError("server is already running.")
        with raised_as_triton():
            self._opened = self._server.open(self.FRONTEND, self._options.as_core())

    def stop(self) -> None:
        """Close the port and its connections. Does nothing if it is closed."""
        opened, self._opened = self._opened, None
        if opened is not None:
            with raised_as_triton():
                self._server.close(opened)

    @property
    def port(self) -> int:
        """Return the port: that of the options, or the free one that 0 stands for. 0 if it is closed."""
        return int(getattr(self._opened, "port", 0)) if self._is_open else 0

    @property
    def _is_open(self) -> bool:
        return self._opened is not None and self._opened in self._server._opened

    def __enter__(self) -> Service:
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()
