"""ProcessHost: runs models in processes of their own. HostedBackend: the backend that it makes for them.

A distribution declares one by entry points of the group core.process_host. Their name states what it runs:

    [project.entry-points."core.process_host"]
    process = "my_package:host"       # models of other backends that set EXECUTION_MODE to process
    "model.py" = "my_package:host"    # folders of --backend-directory that hold this file

Only one distribution may declare each name. An object under both names needs both methods, else one.
"""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from core.backend import Backend

PROCESS = "process"


class HostedBackend(Backend):
    """A backend that runs its models in processes of their own.

    isolated   the backend whose models it runs, None for its own models. core writes `config` of both; the
               child processes open `isolated`, the server does not
    file       the file of --backend-directory/<name> that runs its models, None without such a folder
    based_on   name of a backend whose --backend-config also applies to it, "" for none
    """

    isolated: Backend | None = None
    file: Path | None = None
    based_on: str = ""


class ProcessHost(Protocol):
    """Makes backends whose models run in processes of their own. Any thread."""

    def isolate(self, backend: Backend) -> HostedBackend:
        """Return a backend that runs the models of `backend`; its `isolated` is `backend`."""

    def from_folder(self, name: str, file: Path) -> HostedBackend:
        """Return a backend called `name` whose models `file` runs; its `file` is `file`."""


def file_of(backend: Backend | None) -> Path | None:
    """Return the file of --backend-directory that runs a backend's models, None without one."""
    return backend.file if isinstance(backend, HostedBackend) else None


def isolated_by(backend: Backend) -> Backend | None:
    """Return the backend whose models `backend` runs in separate processes; None for its own models."""
    return backend.isolated if isinstance(backend, HostedBackend) else None
