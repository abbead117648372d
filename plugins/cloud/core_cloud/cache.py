"""Cache: fetched files, and the folders from which versions load.

    RemoteFile ─► object (one file for each content) ─► hard links in the folder of a model

    <folder>/objects/<first two>/<path>-<content>        fetched, complete and checked
    <folder>/objects/<first two>/<path>-<content>.part   being fetched, by the holder of its lock
    <run>/<number>/<model>/…                             the folder from which a model loads

An object has the size of the store's listing, and a time of change derived from its name. An object with
another size or time was modified, and is fetched again. Without --cloud-cache-directory all files are in one
temporary folder. Worker threads; several processes may share a folder.
"""

from __future__ import annotations

import hashlib
import itertools
import logging
import os
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as Late  # another class in Python 3.10
from contextlib import contextmanager, suppress
from pathlib import Path

from core.repository import PrivateDirectory
from core_cloud.failure import Abandoned
from core_cloud.files import RemoteFile

try:
    import fcntl
except ImportError:  # Windows: there are no locks
    fcntl = None  # type: ignore[assignment]

logger = logging.getLogger("core")

THREADS = 8  # parallel transfers, for all models of a repository
PROGRESS_S = 5.0  # between two lines of the log about one model
_YEAR_2000_S = 946_684_800

Fetch = Callable[[RemoteFile, Path], None]


class Cache:
    """The cache of one repository. Create it on the event loop; call its methods on worker threads.

    folder   permanent folder for objects; "" for a temporary one, which `close` removes
    parent   folder in which a temporary one is made; None for the system's default
    ended    set by `close`: stores then stop their transfers
    """

    def __init__(self, folder: str = "", parent: str | None = None):
        self.ended = threading.Event()
        self._folder = Path(folder).absolute() if folder else None
        self._parent = parent
        # Folder of this process; if the process is killed, a later one removes it.
        self._run: PrivateDirectory | None = None
        self._objects = Path()
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()  # for the attributes above, and between links and removals
        self._threads: ThreadPoolExecutor | None = None

    def place_for(self, model: str) -> Path:
        """Return an unused path for a model's folder. Raises OSError, and Abandoned after `close`."""
        with self._lock:
            return self._opened() / str(next(self._numbers)) / model

    def bring(
        self, fetch: Fetch, address: str, files: Mapping[str, RemoteFile], folder: Path
    ) -> list[RemoteFile]:
        """Put files into a folder; fetch those that are not in the cache, several in parallel.

        fetch    (file, path) → None: writes the file of the store to a path
        address  address of the model, which makes its paths unique in the cache
        files    path below the folder → file
        Returns the fetched files. Raises the errors of `fetch`; then some of the files may exist, each of
        them complete.
        """
        with self._lock:
            threads = self._pool()
            bringing = [
                threads.submit(self.bring_one, fetch, f"{address}/{path}", file, folder / path)
                for path, file in files.items()
            ]
        try:
            fetched = [self._result(each, address, files) for each in bringing]
        except BaseException as error:
            # Wait for running transfers: none may write after the caller removes the folder. `wait` is no
            # alternative: it would wait for ever for cancelled ones after `close`.
            for each in bringing:
                if not each.cancel():
                    each.exception()
            if isinstance(error, CancelledError):
                raise Abandoned("the server ends") from error
            raise
        return [file for file, new in zip(files.values(), fetched, strict=True) if new]

    def _result(
        self, transfer: Future[bool], address: str, files: Mapping[str, RemoteFile]
    ) -> bool:
        """Wait for a transfer; return whether it has fetched its file. Raises its error.

        While it runs, log every 5 seconds how much of all `files` is there.
        """
        while not transfer.done():
            try:
                return transfer.result(PROGRESS_S)
            except Late:
                if not transfer.done():
                    self._log_progress(address, files)
        return transfer.result()

    def _log_progress(self, address: str, files: Mapping[str, RemoteFile]) -> None:
        there = 0
        for path, file in files.items():
            place = self._object(f"{address}/{path}", file)
            sizes = map(_size, (place, place.with_name(f"{place.name}.part")))
            there += min(file.size, max(sizes))
        every = sum(file.size for file in files.values())
        logger.info("%s: fetched %.1f of %.1f MB", address, there / 1e6, every / 1e6)

    def bring_one(self, fetch: Fetch, address: str, file: RemoteFile, target: Path) -> bool:
        """Put one file to `target`: from the cache, after it was fetched into the cache if it was not there.

        address  address of the file
        Returns whether it was fetched. Raises the errors of `fetch`, Abandoned after `close`.
        """
        self._check_open()
        target.parent.mkdir(parents=True, exist_ok=True)
        place = self._object(address, file)
        fetched = False
        while not self._link(place, file, target):
            with _alone(place.parent, f"{place.name}.part") as part:
                if not _is_whole(place, file):  # another process may have fetched it meanwhile
                    fetch(file, part)
                    _set_time(part, _time_of(place))
                    self._check_open()
                    os.replace(part, place)
                    self._drop_older(place)
                    fetched = True
        return fetched

    def read(self, fetch: Fetch, address: str, file: RemoteFile) -> bytes:
        """Return the content of a small file, fetched if the cache lacks it. Raises as `bring_one`.

        address  address of the file
        """
        target = self.place_for("text")
        try:
            self.bring_one(fetch, address, file, target)
            return target.read_bytes()
        finally:
            shutil.rmtree(target.parent, ignore_errors=True)

    def remove(self, address: str, files: Mapping[str, RemoteFile], folder: Path) -> None:
        """Remove the folder of a model; in a temporary cache also its objects that no other folder links."""
        shutil.rmtree(folder.parent, ignore_errors=True)
        if self._folder is not None or self._run is None:
            return
        for path, file in files.items():
            place = self._object(f"{address}/{path}", file)
            with self._lock:
                _remove_unused(place)

    def close(self) -> None:
        """Stop transfers, and remove what is not permanent. Methods that put files then raise Abandoned."""
        self.ended.set()
        with self._lock:
            run, self._run = self._run, None
            threads, self._threads = self._threads, None
        if threads is not None:
            threads.shutdown(wait=False, cancel_futures=True)
        if run is not None:
            run.remove()

    # inside ---------------------------------------------------------------------------

    def _check_open(self) -> None:
        if self.ended.is_set():
            raise Abandoned("the server ends")

    def _opened(self) -> Path:
        """Return the folder of this process; create it on first use. Raises OSError, which names the flag."""
        self._check_open()
        if self._run is None:
            above = self._folder or Path(self._parent or tempfile.gettempdir())
            try:
                if self._folder is not None:
                    above.mkdir(parents=True, exist_ok=True)
                self._run = PrivateDirectory(above)
            except OSError as error:
                flag = "--cloud-cache-directory" if self._folder else "the temporary folder"
                raise OSError(
                    f"cannot keep files of cloud storage in '{above}' ({flag}): {error}"
                ) from error
            self._objects = (self._folder or self._run.path) / "objects"
        return self._run.path

    def _pool(self) -> ThreadPoolExecutor:
        self._check_open()
        if self._threads is None:
            self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="core-cloud")
        return self._threads

    def _object(self, address: str, file: RemoteFile) -> Path:
        path = _digest(address)
        return self._objects / path[:2] / f"{path}-{_digest(file.content)}"

    def _link(self, place: Path, file: RemoteFile, target: Path) -> bool:
        """Put the object of a file, which is at `place`, to `target`: by a link, or else by a copy.

        Return False, and do nothing, if there is no whole object of the file.
        """
        with self._lock:
            if not _is_whole(place, file):
                return False
            target.unlink(missing_ok=True)
            try:
                os.link(place, target)
            except OSError as error:
                if not place.exists():
                    return False
                logger.debug("'%s' is copied, it cannot be linked: %s", target, error)
            else:
                return True
        shutil.copyfile(place, target)  # outside of the lock: it may take long
        return True

    def _drop_older(self, place: Path) -> None:
        """Remove objects of earlier contents of the file whose object is `place`, and its partial files.

        Those that a model's folder links, or that another process fetches, stay.
        """
        path = place.name.partition("-")[0]
        for each in place.parent.glob(f"{path}-*"):
            if each.suffix == ".part":
                _remove_left(each)
            elif each != place:
                with self._lock:
                    _remove_unused(each)


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode(errors="surrogateescape"), digest_size=16).hexdigest()


def _time_of(place: Path) -> int:
    """Return the time of change, in ns, that an object at `place` must have; it depends on its name only."""
    return (_YEAR_2000_S + int(_digest(place.name)[:7], 16)) * 1_000_000_000


def _set_time(part: Path, time_ns: int) -> None:
    """Set the time of change of a file. Raises OSError if the file system does not keep it as it is.

    Without it, the file would not be known as a whole object.
    """
    os.utime(part, ns=(time_ns, time_ns))
    if part.stat().st_mtime_ns != time_ns:
        raise OSError(
            f"the file system of '{part.parent}' does not keep the time of change of a file, by which what "
            "was fetched is known; give another folder"
        )


def _is_whole(place: Path, file: RemoteFile) -> bool:
    try:
        status = place.stat()
    except OSError:
        return False
    return status.st_size == file.size and status.st_mtime_ns == _time_of(place)


def _remove_unused(place: Path) -> None:
    with suppress(OSError):  # another process has removed it
        if place.stat().st_nlink == 1:
            place.unlink()


def _remove_left(part: Path) -> None:
    """Remove a partial file, unless a process holds its lock, or the system has no such locks."""
    if fcntl is None:
        return
    try:
        lock = os.open(part, os.O_RDWR)
    except OSError:  # gone meanwhile
        return
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if _is_same(lock, part):
            part.unlink(missing_ok=True)
    except OSError:  # another process fetches it, or there are no locks
        pass
    finally:
        os.close(lock)


def _size(path: Path) -> int:
    """Return the size of a file in bytes; 0 if there is none."""
    try:
        return path.stat().st_size
    except OSError:
        return 0


@contextmanager
def _alone(folder: Path, name: str) -> Iterator[Path]:
    """Yield the path of a file that this process has locked; create it, and its folder, if needed.

    At the end of the with statement, remove the file, unless it was renamed, and release the lock.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    lock = _held(path)
    try:
        yield path
    finally:
        if _is_same(lock, path):
            path.unlink(missing_ok=True)
        os.close(lock)


def _held(path: Path) -> int:
    """Open the file at `path`, create it if needed, and lock it. Return its descriptor.

    Wait while another process holds the lock. Where there are no locks, return it without one.
    """
    while True:
        lock = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
        if fcntl is None:
            return lock
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
        except OSError:  # a file system without locks: two processes may fetch the same object
            return lock
        if _is_same(lock, path):
            return lock
        os.close(lock)  # the previous holder has renamed or removed it


def _is_same(opened: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(opened), path.stat())
    except OSError:
        return False
