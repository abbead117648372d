"""Database: the SQLite file of the jobs, of bounded size."""

from __future__ import annotations

import os
import shutil
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from core.errors import CoreError, Kind, unavailable
from core_jobs.store import schema

FILE = "jobs.sqlite"
_BUSY_S = 30.0  # for the other workers
_LOG_BYTES = 64 << 20  # of the write-ahead log that remains after a large submission
_FREE_BYTES = 16 << 20  # of a disk that is not full
_VACUUM_PAGES = 4096  # that one call of `shrink` gives back


class FolderFull(CoreError):
    """The file has reached --jobs-max-bytes. A full disk is an ordinary CoreError(UNAVAILABLE)."""

    def __init__(self, message: str):
        super().__init__(Kind.UNAVAILABLE, message)


class Database:
    """One connection of a process to the store. One thread at a time.

    folder       must exist
    most_bytes   limit of the file. The write-ahead log beside it comes on top: about the largest submission
    now_s        clock: returns seconds since 1970
    Raises CoreError(UNAVAILABLE) for a folder or a file that cannot be used.
    """

    def __init__(self, folder: Path, most_bytes: int, now_s: Callable[[], float] = time.time):
        self.now_s = now_s
        self.most_bytes = most_bytes
        self.path = folder / FILE
        try:
            # Results may be private: only the owner reads them.
            os.close(os.open(self.path, os.O_CREAT | os.O_RDWR, 0o600))
            self._sql = sqlite3.connect(
                self.path, timeout=_BUSY_S, isolation_level=None, check_same_thread=False
            )
            self._prepare()
        except (OSError, sqlite3.Error) as error:
            raise unavailable(f"the jobs in '{self.path}' cannot be opened: {error}") from None

    def _prepare(self) -> None:
        sql = self._sql
        sql.row_factory = sqlite3.Row
        sql.execute("PRAGMA auto_vacuum = INCREMENTAL")
        sql.execute("PRAGMA journal_mode = WAL")
        sql.execute(f"PRAGMA journal_size_limit = {_LOG_BYTES}")
        # A transaction survives the kill of this process. Only submissions must also survive a power cut,
        # since results that are lost with their transaction are made again.
        sql.execute("PRAGMA synchronous = NORMAL")
        self._page_bytes = self._pragma("page_size")
        sql.execute(f"PRAGMA max_page_count = {max(1, self.most_bytes // self._page_bytes)}")
        with self.transaction() as opened:
            schema.create(opened, str(self.path))

    def close(self) -> None:
        self._sql.close()

    def _pragma(self, name: str) -> int:
        return int(self._sql.execute(f"PRAGMA {name}").fetchone()[0])

    @contextmanager
    def transaction(self, *, durable: bool = False) -> Iterator[sqlite3.Connection]:
        """Begin a transaction that writes; commit it at the end of the block, or roll it back.

        durable   whether it must survive a power cut
        Raises FolderFull, and CoreError(UNAVAILABLE) for errors of the disk.
        """
        sql = self._sql
        try:
            if durable:
                sql.execute("PRAGMA synchronous = FULL")
            sql.execute("BEGIN IMMEDIATE")
            try:
                yield sql
                sql.execute("COMMIT")
            except BaseException:
                if sql.in_transaction:
                    sql.execute("ROLLBACK")
                raise
            finally:
                if durable:
                    sql.execute("PRAGMA synchronous = NORMAL")
        except sqlite3.Error as error:
            raise self._refusal(error) from None

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Return the connection for statements that only read. Raises CoreError(UNAVAILABLE)."""
        try:
            yield self._sql
        except sqlite3.Error as error:
            raise self._refusal(error) from None

    def _refusal(self, error: sqlite3.Error) -> CoreError:
        if "full" not in str(error):
            return unavailable(f"the jobs in '{self.path}' cannot be used: {error}")
        if shutil.disk_usage(self.path.parent).free < _FREE_BYTES:
            return unavailable(f"the disk of '{self.path.parent}' is full")
        return FolderFull(
            f"there is no room: --jobs-max-bytes={self.most_bytes}, of which {self.used_bytes()} are in use; "
            "delete jobs whose results are no longer needed"
        )

    def used_bytes(self) -> int:
        """Return the bytes of the file that hold something."""
        return self._page_bytes * (self._pragma("page_count") - self._pragma("freelist_count"))

    def changes(self) -> int:
        """Return a number that is another one after another connection has changed the file.

        Raises CoreError(UNAVAILABLE).
        """
        with self.reading():
            return self._pragma("data_version")

    def shrink(self) -> None:
        """Give some of the space of deleted rows back to the disk."""
        with self.reading() as sql:
            # Each step of the statement frees one page, and `execute` takes one step only.
            sql.executescript(f"PRAGMA incremental_vacuum({_VACUUM_PAGES})")
