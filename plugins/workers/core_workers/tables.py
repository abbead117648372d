"""Tables: memory that all workers of one server share, by name.

supervisor ─► create_file ─► descriptor ─► worker ─► its frontends.  No message is sent to use a table.

An entry point of group `core.worker_tables` names the class of a table. The supervisor makes the memory of
every table before it starts the workers, and clears the part of a worker that has ended.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Protocol

from core import plugins

TABLES = "core.worker_tables"


class WorkerTable(Protocol):
    """Methods that the class of a table must have: it maps memory that all workers share."""

    def __init__(self, file: int, workers: int, worker: int):
        """Map the table.

        file      descriptor that `create_file` has returned; it may be closed afterwards
        workers   number of processes that share the table
        worker    number of this process among them, from 0 on
        """

    @staticmethod
    def create_file(workers: int) -> int:
        """Make the memory of a table for `workers` processes; return its descriptor. Raises OSError."""

    def clear(self, worker: int) -> None:
        """Clear the part of a worker that has ended; `worker` counts from 0 on."""


def open_table(name: str, file: int, workers: int, worker: int) -> Any:
    """Map the table of that name, and return it. Raises CoreError if its class cannot be imported.

    file, workers, worker   as in WorkerTable
    """
    return plugins.installed(TABLES)[name].load()(file, workers, worker)


class SharedTables:
    """All tables of one server, in the supervisor, which makes their memory.

    The constructor raises CoreError if a class cannot be imported, OSError if memory cannot be made.
    files   name of a table → descriptor of its memory, for the workers
    """

    def __init__(self, workers: int):
        self.files: dict[str, int] = {}
        self._tables: list[WorkerTable] = []
        for name, plugin in plugins.installed(TABLES).items():
            self.files[name] = plugin.load().create_file(workers)
            self._tables.append(open_table(name, self.files[name], workers, 0))

    def clear(self, worker: int) -> None:
        """Clear the part of a worker that has ended in every table; `worker` counts from 0 on."""
        for table in self._tables:
            table.clear(worker)

    def close(self) -> None:
        """Close the supervisor's descriptors. The workers keep what they have mapped."""
        for file in self.files.values():
            os.close(file)
        self.files.clear()


class TablesOfWorker:
    """The tables of the server, in one worker. Not thread-safe: use it on the event loop only.

    files     name → descriptor, inherited from the supervisor
    workers   number of workers
    worker    number of this worker, from 0 on
    """

    def __init__(self, files: Mapping[str, int], workers: int, worker: int):
        self._files = files
        self._workers = workers
        self._worker = worker
        for file in files.values():
            os.set_inheritable(file, False)  # child processes of models must not inherit it

    def open(self, name: str) -> Any:
        """Map the table of that name, and return it. Raises KeyError if no distribution provides it."""
        return open_table(name, self._files[name], self._workers, self._worker)
