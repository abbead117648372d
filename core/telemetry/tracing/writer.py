"""TraceFiles: traces as JSON in files, written by a thread of their own."""

from __future__ import annotations

import asyncio
import json
import logging
import queue
import threading
from typing import NamedTuple, TextIO

from core.telemetry.tracing.trace import Trace

logger = logging.getLogger("core")


class _Job(NamedTuple):
    path: str
    traces: list[Trace]
    number: int | None


class TraceFiles:
    """Every trace file of a server. A file is a JSON array. Loop thread, but for `_serve` and below.

    A file that cannot be written is an error in the log, once, and its traces are lost.

    suffix   what the path of every file gets behind it: several workers must not write to one file
    """

    def __init__(self, suffix: str = "") -> None:
        self._suffix = suffix
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._closed = False
        self._next_number: dict[str, int] = {}
        # The writer's thread only:
        self._open: dict[str, TextIO] = {}  # arrays without their end
        self._failed: set[str] = set()

    def append(self, path: str, traces: list[Trace]) -> None:
        """Add traces to the file at `path`; it is complete after `close`.

        What it held before this server is lost with the first.
        """
        self._put(_Job(path + self._suffix, traces, None))

    def save_numbered(self, path: str, traces: list[Trace]) -> None:
        """Write traces into a file of their own: `path`.0, `path`.1 and so on."""
        path += self._suffix
        number = self._next_number.get(path, 0)
        self._next_number[path] = number + 1
        self._put(_Job(path, traces, number))

    async def close(self) -> None:
        """Complete every file; returns when all is written. What comes later is lost.

        A second call does nothing.
        """
        self._closed = True
        thread, self._thread = self._thread, None
        if thread is not None:
            self._jobs.put(None)
            await asyncio.get_running_loop().run_in_executor(None, thread.join)

    def _put(self, job: _Job) -> None:
        if self._closed:  # a file that was opened again would lose what it has
            return
        if self._thread is None:
            self._thread = threading.Thread(
                target=self._serve, name="core-trace-writer", daemon=True
            )
            self._thread.start()
        self._jobs.put(job)

    # the writer's thread ---------------------------------------------------

    def _serve(self) -> None:
        while (job := self._jobs.get()) is not None:
            try:
                self._write(job)
            except OSError as error:
                self._say_failure(job.path, error)
            except Exception:
                logger.exception("a trace cannot be written")
        for path, file in self._open.items():
            try:
                with file:
                    file.write("]")
            except OSError as error:
                self._say_failure(path, error)
        self._open.clear()

    def _write(self, job: _Job) -> None:
        entries = [entry for trace in job.traces for entry in trace.entries()]
        text = json.dumps(entries, separators=(",", ":"))
        if job.number is not None:
            with open(f"{job.path}.{job.number}", "w", encoding="ascii") as file:
                file.write(text)
            return
        open_file = self._open.get(job.path)
        if open_file is None:
            open_file = self._open[job.path] = open(job.path, "w", encoding="ascii")  # noqa: SIM115
            open_file.write(text[:-1])
        else:
            open_file.write("," + text[1:-1])
        open_file.flush()

    def _say_failure(self, path: str, error: OSError) -> None:
        if path not in self._failed:
            self._failed.add(path)
            logger.error("failed to write the trace file: %s", error)
