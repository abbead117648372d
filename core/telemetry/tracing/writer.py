"""TraceFiles: write traces as JSON to files, on a separate thread."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import queue
import threading
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

from core.telemetry.losses import Losses
from core.telemetry.tracing.trace import Trace

logger = logging.getLogger("core")


_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC


class _Job(NamedTuple):
    path: str
    traces: list[Trace]
    number: int | None


class TraceFiles:
    """The trace files of a server; each is a JSON array. Call from the loop thread only.

    Traces that cannot be written are lost; the log reports them at intervals. A file never contains a part
    of a trace: a failed write is removed from it.

    suffix   appended to the path of every file, because several workers must not write to one file
    """

    def __init__(self, suffix: str = "") -> None:
        self._suffix = suffix
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._closed = False
        self._next_number: dict[str, int] = {}
        # Used by the writer's thread only:
        self._open: dict[str, _Array] = {}  # arrays without their closing bracket
        self._losses: dict[str, Losses] = {}

    def append(self, path: str, traces: list[Trace]) -> None:
        """Add traces to the file at `path`; the file is valid JSON after `close`.

        The first call for a path truncates an existing file.
        """
        self._put(_Job(path + self._suffix, traces, None))

    def save_numbered(self, path: str, traces: list[Trace]) -> None:
        """Write traces to a file of their own, `path`.0 first, then `path`.1; replace an existing file."""
        path += self._suffix
        number = self._next_number.get(path, 0)
        self._next_number[path] = number + 1
        self._put(_Job(path, traces, number))

    async def close(self) -> None:
        """Complete every file; return when all traces are written. Traces of later calls are dropped.

        A second call does nothing.
        """
        self._closed = True
        thread, self._thread = self._thread, None
        if thread is not None:
            self._jobs.put(None)
            await asyncio.get_running_loop().run_in_executor(None, thread.join)

    def _put(self, job: _Job) -> None:
        if self._closed:  # opening a file again would truncate it
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
                if job.path in self._losses:
                    self._losses[job.path].end()
            except OSError as error:
                self._lose(job.path, error, len(job.traces))
            except Exception:
                logger.exception("a trace cannot be written")
        for path, array in self._open.items():
            try:
                array.end()
            except OSError as error:
                self._lose(path, error, 0)
        self._open.clear()
        for losses in self._losses.values():
            losses.flush()

    def _write(self, job: _Job) -> None:
        entries = [entry for trace in job.traces for entry in trace.entries()]
        text = json.dumps(entries, separators=(",", ":")).encode("ascii")
        if job.number is not None:
            numbered = f"{job.path}.{job.number}"
            whole = _Array(os.open(numbered, _NEW_FILE, 0o666))
            try:
                whole.append(text[1:-1])
            except OSError:
                os.unlink(numbered)
                raise
            finally:
                whole.end()
            return
        array = self._open.get(job.path)
        if array is None:
            array = self._open[job.path] = _Array(os.open(job.path, _NEW_FILE, 0o666))
        array.append(text[1:-1])

    def _lose(self, path: str, error: OSError, count: int) -> None:
        if path not in self._losses:
            self._losses[path] = Losses(logger.error, "traces are")
        self._losses[path].add(f"failed to write the trace file: {error}", count)


@dataclass
class _Array:
    """A file with an unfinished JSON array. It never contains a part of an element.

    size   bytes in the file
    """

    file: int
    size: int = 0

    def append(self, elements: bytes) -> None:
        """Add one or more elements, separated by commas. Raises OSError; then none is added."""
        self._write((b"," if self.size else b"[") + elements)

    def end(self) -> None:
        """Complete and close it. Raises OSError if it cannot be completed."""
        try:
            self._write(b"]" if self.size else b"[]")
        finally:
            os.close(self.file)

    def _write(self, rest: bytes) -> None:
        size = len(rest)
        try:
            while rest:
                rest = rest[os.write(self.file, rest) :]
        except OSError:
            with suppress(OSError):  # a pipe has no size and no position
                os.ftruncate(self.file, self.size)
                os.lseek(self.file, self.size, os.SEEK_SET)
            raise
        self.size += size
