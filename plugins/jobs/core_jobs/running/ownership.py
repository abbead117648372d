"""Ownership: which process runs a job, and whether that process still lives.

Each process keeps a file locked. The kernel releases the lock when the process ends, however it ends: another
process that gets the lock knows that the jobs of this owner have stopped.
"""

from __future__ import annotations

import fcntl
import os
import secrets
from pathlib import Path

from core.errors import CoreError, unavailable

_OWNERS = "owners"
_SERVER = "server.lock"


class FolderLock:
    """Keeps a folder for one server: for its only process, or for the supervisor of its workers.

    Creates the folder. Raises CoreError(UNAVAILABLE) if it cannot be used, or another server uses it.
    """

    def __init__(self, folder: Path):
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            (folder / _OWNERS).mkdir(mode=0o700, exist_ok=True)
            self._file = os.open(folder / _SERVER, os.O_CREAT | os.O_RDWR, 0o600)
        except OSError as error:
            raise _unusable(folder, error) from None
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(self._file)
            if isinstance(error, BlockingIOError):
                raise unavailable(
                    f"--jobs-folder='{folder}' is in use by another server; give each server a folder of its "
                    "own"
                ) from None
            raise _unusable(folder, error) from None

    def close(self) -> None:
        """Let another server use the folder."""
        os.close(self._file)


class Owner:
    """This process as an owner of jobs. Raises CoreError(UNAVAILABLE) if the folder cannot be written.

    name   in the store
    """

    def __init__(self, folder: Path):
        self._folder = folder / _OWNERS
        self.name = secrets.token_hex(8)
        new = self._folder / f".{self.name}"
        try:
            self._file = os.open(new, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Locked before it has the name under which others look.
            new.rename(self._folder / self.name)
        except OSError as error:
            raise _unusable(folder, error) from None

    def ended(self, owners: set[str]) -> set[str]:
        """Return those of `owners`, and of all that have a file, whose process has ended."""
        names = {each.name for each in self._folder.iterdir() if not each.name.startswith(".")}
        return {name for name in names | owners if name != self.name and self._has_ended(name)}

    def _has_ended(self, name: str) -> bool:
        try:
            file = os.open(self._folder / name, os.O_RDWR)
        except OSError:
            return True
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        finally:
            os.close(file)
        return True

    def forget(self, owners: set[str]) -> None:
        """Remove the files of owners that have ended, after their jobs were released."""
        for name in owners:
            (self._folder / name).unlink(missing_ok=True)

    def close(self) -> None:
        """End the ownership, after this process has released its jobs."""
        self.forget({self.name})
        os.close(self._file)


def _unusable(folder: Path, error: OSError) -> CoreError:
    return unavailable(
        f"--jobs-folder='{folder}' cannot be used: {error.strerror or error}; name a folder on a local disk "
        "that this process may write"
    )
