"""Server: a model server inside a program, with the methods of Triton's module."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any

from tritonserver_core.embedded import EmbeddedServer
from tritonserver_core.registered import RegisteredFolders

from tritonserver._api._enums import MetricFormat, ModelControlMode
from tritonserver._api._errors import (
    InternalError,
    InvalidArgumentError,
    UnavailableError,
    raised_as_triton,
)
from tritonserver._api._logging import set_log_callback
from tritonserver._api._model import Model
from tritonserver._api._options import Options, has_url

_UNLOADED = (None, "UNAVAILABLE")


class ModelDictionary(dict[tuple[str, int], Model]):
    """(name, version) → Model. A name alone gives the newest version. Raises KeyError for an unknown one."""

    def __init__(self, server: Server, models: Iterable[Model]) -> None:
        super().__init__({(each.name, each.version): each for each in models})
        self._server = server

    def __getitem__(self, key: Any) -> Model:
        if isinstance(key, tuple) and key in self:
            return super().__getitem__(key)
        if any(name == key for name, _ in self):
            return Model(self._server, key)
        raise KeyError(f"unknown model: {key!r}")


class Server:
    """A server in this process. Any thread.

    options   None: they are made of the other arguments, the fields of Options
    `start` starts it, `stop` stops it; then it may start again. It stops when the interpreter exits.
    """

    def __init__(self, options: Options | None = None, **kwargs: Any) -> None:
        self.options = Options(**kwargs) if options is None else options
        self._embedded: EmbeddedServer | None = None

    def start(
        self,
        wait_until_ready: bool = False,
        polling_interval: float = 0.1,
        timeout: float | None = None,
    ) -> Server:
        """Start the server and load the models that the control mode names; return it.

        wait_until_ready   whether to return only when the server is ready
        timeout            most seconds to wait for that
        Raises InvalidArgumentError for a wrong option, and if it runs already; InternalError if a repository
        cannot be read or a model fails; UnavailableError after the timeout; TypeError for an option of
        another type.
        """
        if self._embedded is not None:
            raise InvalidArgumentError("the server is already started")
        set_log_callback(self.options.log_callback)
        with raised_as_triton():
            self._embedded = _started(self.options)
        if wait_until_ready and not _wait(self.ready, polling_interval, timeout):
            raise UnavailableError(f"the server is not ready after {timeout} s")
        return self

    def stop(self) -> None:
        """Refuse new requests, finish the running ones, unload all models.

        Raises InternalError if requests are left after `exit_timeout` seconds; the server has stopped then.
        """
        server = self._running()
        self._embedded = None
        with raised_as_triton():
            server.stop()
        if not server.complete:
            raise InternalError("Exit timeout expired. Exiting immediately.")

    def register_model_repository(
        self, repository_path: str, name_mapping: dict[str, str] | None = None
    ) -> None:
        """Add a folder with models. Needs ModelControlMode.EXPLICIT.

        name_mapping   name of a folder in it → name of its model
        Raises UnavailableError in another mode, AlreadyExistsError, InternalError without that folder.
        """
        server = self._running()
        with raised_as_triton():
            server.register(repository_path, name_mapping or {})

    def unregister_model_repository(self, repository_path: str) -> None:
        """Remove a folder with models; loaded models stay. Raises UnavailableError, NotFoundError."""
        server = self._running()
        with raised_as_triton():
            server.unregister(repository_path)

    def poll_model_repository(self) -> None:
        """Load what has changed in the repositories. Raises UnavailableError unless the mode is POLL."""
        server = self._running()
        with raised_as_triton():
            server.poll()

    def metadata(self) -> dict[str, Any]:
        """Return name, version and extensions of the server."""
        server = self._running()
        with raised_as_triton():
            return server.metadata()

    def live(self) -> bool:
        """Return whether the server runs."""
        server = self._running()
        with raised_as_triton():
            return server.live()

    def ready(self) -> bool:
        """Return whether the server and, with `strict_readiness`, all its models are ready."""
        return self._running().ready()

    def model(self, model_name: str, model_version: int = -1) -> Model:
        """Return a model, which need not exist yet."""
        return Model(self, model_name, model_version)

    def models(self, exclude_not_ready: bool = False) -> ModelDictionary:
        """Return the models of all repositories with their states; unloaded ones have version -1."""
        server = self._running()
        with raised_as_triton():
            found = server.index(ready_only=exclude_not_ready)
        return ModelDictionary(self, [_listed(self, **each) for each in found])

    def load(
        self, model_name: str, parameters: dict[str, str | int | bool | bytes] | None = None
    ) -> Model:
        """Load or reload a model; return it when it is ready. Needs ModelControlMode.EXPLICIT.

        parameters   "config": its configuration as JSON text; "file:<path>": bytes of a file
        Raises the TritonError of a load that failed.
        """
        server = self._running()
        for name, value in (parameters or {}).items():
            if not isinstance(value, str | int | bool | bytes):
                raise TypeError(f"parameter '{name}' is {value!r}; give a str, int, bool or bytes")
        with raised_as_triton():
            server.load(model_name, parameters)
        return self.model(model_name)

    def unload(
        self,
        model: str | Model,
        unload_dependents: bool = False,
        wait_until_unloaded: bool = False,
        polling_interval: float = 0.1,
        timeout: float | None = None,
    ) -> None:
        """Unload a model; requests in flight finish. Needs ModelControlMode.EXPLICIT.

        unload_dependents     whether to unload the models that an ensemble is composed of, too
        wait_until_unloaded   whether to wait for the last request, at most `timeout` seconds
        """
        server = self._running()
        name = model if isinstance(model, str) else model.name
        with raised_as_triton():
            server.unload(name, unload_dependents=unload_dependents)
        if wait_until_unloaded:
            _wait(lambda: self._is_unloaded(name), polling_interval, timeout)

    def metrics(self, metric_format: MetricFormat = MetricFormat.PROMETHEUS) -> str:
        """Return all metrics as text; "" if the option `metrics` is off."""
        if metric_format is not MetricFormat.PROMETHEUS:
            raise InvalidArgumentError(f"format of metrics {metric_format!r} is unknown")
        server = self._running()
        with raised_as_triton():
            return server.metrics_text() if self.options.metrics else ""

    def _running(self) -> EmbeddedServer:
        if self._embedded is None:
            raise InvalidArgumentError("the server is not started: call start()")
        return self._embedded

    def _is_unloaded(self, name: str) -> bool:
        return all(each.state in _UNLOADED for each in self.models().values() if each.name == name)


def _started(options: Options) -> EmbeddedServer:
    """Return a running server. Raises CoreError, and what Options raises."""
    settings, paths = options._as_core(), options._repositories()
    explicit = options.model_control_mode is ModelControlMode.EXPLICIT
    folders: RegisteredFolders | None = None
    if explicit and not options.model_namespacing and not has_url(paths):
        folders = RegisteredFolders()
        for path in dict.fromkeys(paths):
            folders.add(path, check=False)
        paths = [folders.location]
    server = EmbeddedServer(folders, model_repository=paths, **settings)
    server.start()
    return server


def _listed(server: Server, name: str, version: Any = -1, **more: str) -> Model:
    return Model(server, name, int(version), more.get("state"), more.get("reason"))


def _wait(question: Callable[[], bool], interval_s: float, timeout_s: float | None) -> bool:
    """Ask a question until the answer is yes, at most `timeout_s` seconds; return whether it is."""
    end_s = None if timeout_s is None else time.monotonic() + timeout_s
    while not question():
        if end_s is not None and time.monotonic() >= end_s:
            return False
        time.sleep(interval_s)
    return True
