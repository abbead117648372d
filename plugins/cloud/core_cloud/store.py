"""Store: list and fetch the objects of one place. Worker threads, several at a time.

CloudRepository, Cache ─► [Store] ─► fsspec ─► the network.  Transient failures are retried a few times with
growing pauses. All operations have time limits. Every error is a StoreError, a CoreError or Abandoned.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import importlib
import logging
import random
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from core.errors import CoreError
from core_cloud.address import Place
from core_cloud.credentials import Credentials, credentials_of
from core_cloud.failure import Abandoned, Failure, Incomplete, described, failure_of
from core_cloud.files import RemoteFile, Tree, tree_of
from core_cloud.options import anonymous, open_files

logger = logging.getLogger("core")

T = TypeVar("T")

ATTEMPTS = 4
LIST_S = 60.0  # time limit for one listing with all its pages, including retries of gcsfs
_PAUSE_S = 0.25  # before the second attempt; doubled for each one after
_CHUNK = 1 << 20


class Store:
    """Lists and fetches the objects of one place in cloud storage.

    ended   when it is set, running transfers stop, and nothing is retried; None for an event of its own
    pause   waits for a number of seconds before the next attempt; None: returns at once when `ended` is set
    """

    def __init__(
        self,
        place: Place,
        ended: threading.Event | None = None,
        pause: Callable[[float], object] | None = None,
    ):
        self.place = place
        self._ended = ended or threading.Event()
        self._pause = pause or self._ended.wait
        self._lock = threading.Lock()  # guards the next four
        self._refused = False  # the store has denied the last request
        self._files: Any = None
        self._root = ""
        self._credentials: Credentials = {}
        self._logged: set[str] = set()  # skipped names that were logged

    # listings ----------------------------------------------------------------------

    def names(self, *, may_be_empty: bool = True) -> set[str]:
        """Return the names of the folders directly in the place. Raises StoreError if it does not exist.

        may_be_empty   True: a path without objects in a bucket that exists has no folders, as after the last
                       deletion; False: it does not exist
        """
        found = self._try("list its folders", self._list_folders)
        if not (found.folders or found.files or may_be_empty):
            self._try("find it", self._must_exist)
        return {folder.partition("/")[0] for folder in found.folders}

    def tree(self, below: str = "") -> Tree:
        """Return all objects below the place, or below the folder `below` in it. Raises StoreError.

        There may be none, but the bucket must exist.
        """
        what = f"list the objects of '{below}'" if below else "list its objects"
        return self._try(what, lambda files, root: self._list(files, root, below))

    def _known(self, tree: Tree) -> Tree:
        """Return `tree`. Log each name in its `odd` that was not logged before."""
        for name in set(tree.odd) - self._logged:
            self._logged.add(name)
            logger.warning(
                "%s: '%s' is left out: no file of a model can have that name",
                self.place.shown,
                name,
            )
        return tree

    def _list_folders(self, files: Any, root: str) -> Tree:
        files.invalidate_cache()
        try:
            found = self._ask(files, "ls", root, detail=True)
        except FileNotFoundError:
            self._bucket_must_exist(files)
            found = []
        return self._known(tree_of({each["name"]: each for each in found}, root))

    def _list(self, files: Any, root: str, below: str) -> Tree:
        files.invalidate_cache()
        path = f"{root}/{below}" if below else root
        try:
            found = self._ask(files, "find", path, detail=True, withdirs=True)
        except FileNotFoundError:
            found = {}
        if not found:
            self._bucket_must_exist(files)
        if not isinstance(found, Mapping):  # some file systems return a list for a file
            found = {}
        return self._known(tree_of(found, path))

    def _bucket_must_exist(self, files: Any) -> None:
        """Raise FileNotFoundError if the bucket does not exist; an empty path in it is no error."""
        self._ask(files, "info", self.place.bucket or self._root)

    def _must_exist(self, files: Any, root: str) -> None:
        """Raise FileNotFoundError if the bucket does not exist or has nothing at the path."""
        self._bucket_must_exist(files)
        if root != self.place.bucket and not self._ask(files, "exists", root):
            raise FileNotFoundError(f"there is nothing at '{root}'")

    # files --------------------------------------------------------------------------

    def fetch(self, file: RemoteFile, target: Path) -> None:
        """Write an object to `target`, and check size and digest against the listing.

        Raises StoreError, or Abandoned once `ended` is set; `target` must not be used then.
        """

        def once(files: Any, root: str) -> None:
            files.get_file(file.key, str(target), **self._watched(files))
            self._check(files, file, target)

        self._try(f"fetch '{file.key}'", once)

    def _watched(self, files: Any) -> dict[str, Any]:
        """Return the arguments of `get_file` by which a transfer raises Abandoned when `ended` is set."""
        callbacks = importlib.import_module("fsspec.callbacks")
        ended = self._ended

        class Watch(callbacks.Callback):  # type: ignore[misc,name-defined]
            def relative_update(self, inc: int = 1) -> None:
                if ended.is_set():
                    raise Abandoned("the server ends")

        return {"callback": Watch()}

    def _check(self, files: Any, file: RemoteFile, target: Path) -> None:
        size = target.stat().st_size
        if size != file.size:
            raise Incomplete(
                f"{size} bytes came, and the listing says {file.size}: the object has changed meanwhile, or "
                "the transfer was cut"
            )
        if file.md5:
            if _digest(target, hashlib.md5(usedforsecurity=False)).hexdigest() == file.md5:
                return
            if file.sure or self._is_md5(files, file):
                raise Incomplete(f"its MD5 is not {file.md5}, as the listing says")
        elif file.crc32c and (found := _crc32c(target)) is not None:
            if found != file.crc32c:
                raise Incomplete(f"its CRC32C is {found}, and the listing says {file.crc32c}")
            return
        # There is no digest, as for multipart uploads to S3: compare the tags of the object with the listing.
        if file.changed(self._ask(files, "info", file.key)):
            raise Incomplete("the object has changed since it was listed")

    def _is_md5(self, files: Any, file: RemoteFile) -> bool:
        """Return whether the ETag of an object must be its MD5; False for other stores than S3.

        Called if the fetched content has another MD5; only if this returns True, that is an error.
        It is not the MD5 with encryption by a customer's key and in directory buckets, nor surely with any
        encryption on servers other than Amazon's. TLS and the checksums of s3fs protect these objects.
        """
        if not hasattr(files, "call_s3"):
            return False
        bucket, _, key = file.key.partition("/")
        head = files.call_s3("head_object", Bucket=bucket, Key=key)
        encryption = str(head.get("ServerSideEncryption") or head.get("SSECustomerAlgorithm") or "")
        plain = encryption in ("", "AES256") if not self.place.endpoint else not encryption
        return plain and "SSECustomerAlgorithm" not in head and not bucket.endswith("--x-s3")

    # attempts -------------------------------------------------------------------------

    def _try(self, what: str, action: Callable[[Any, str], T]) -> T:
        """Return `action(files, root)`, which is tried up to ATTEMPTS times, with pauses, if it may succeed.

        It is tried again after a transient failure, and for S3 without credentials if none were found. Other
        errors become a StoreError about `what`; CoreError and Abandoned are raised as they are.
        """
        for attempt in range(1, ATTEMPTS + 1):
            try:
                return action(*self._open())
            except Exception as error:
                failure = failure_of(error)
                if failure is Failure.NO_CREDENTIALS and self._go_without():
                    continue
                if isinstance(error, CoreError | Abandoned):
                    raise
                self._refused = failure is Failure.DENIED
                lasting = failure is not Failure.TRANSIENT or attempt == ATTEMPTS
                if lasting or self._ended.is_set():
                    raise described(
                        self.place, what, error, attempt, self._is_anonymous()
                    ) from error
                logger.debug("%s: attempt %d to %s: %r", self.place.shown, attempt, what, error)
            self._pause(_PAUSE_S * 2 ** (attempt - 1) * random.uniform(0.75, 1.25))
        raise AssertionError("the last attempt returns or raises")

    def _open(self) -> tuple[Any, str]:
        """Return the file system and the place's path in it.

        It is opened again if the credentials have changed, or if the store has denied the last request.
        """
        credentials = credentials_of(self.place)
        with self._lock:
            if self._files is None or credentials != self._credentials or self._refused:
                self._files, self._root = open_files(self.place, credentials, fresh=self._refused)
                self._credentials, self._refused = credentials, False
            return self._files, self._root

    def _go_without(self) -> bool:
        """Switch to a file system without credentials, for later attempts, and return True.

        Return False if the store has no such file system, or it is in use already.
        """
        with self._lock:
            if getattr(self._files, "anon", True):
                return False
            files = anonymous(self.place, self._credentials)
            if files is not None:
                self._files = files
            return files is not None

    def _is_anonymous(self) -> bool:
        """Return whether requests have no credentials; False if the file system is not open."""
        if self._files is None:
            return False
        google = getattr(self._files, "credentials", None)
        return bool(getattr(self._files, "anon", google is not None and google.credentials is None))

    def _ask(self, files: Any, method: str, *args: Any, **how: Any) -> Any:
        """Return the result of a file system's method. Raises what it raises.

        If the file system is async, raises TimeoutError after LIST_S seconds; others get no limit here.
        """
        if not getattr(files, "async_impl", False):
            return getattr(files, method)(*args, **how)
        coroutine = getattr(files, f"_{method}")(*args, **how)
        future = asyncio.run_coroutine_threadsafe(coroutine, files.loop)
        try:
            return future.result(LIST_S)
        finally:
            future.cancel()  # no effect if it is done


def _crc32c(path: Path) -> str | None:
    """Return the CRC32C of a file in base64; None if google_crc32c is not installed."""
    try:
        google_crc32c = importlib.import_module("google_crc32c")
    except ImportError:
        return None
    return base64.b64encode(_digest(path, google_crc32c.Checksum()).digest()).decode()


def _digest(path: Path, digest: Any) -> Any:
    with open(path, "rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    return digest
