"""A model repository: --model-repository=zip://models.zip serves the models of a zip file."""

import shutil
import tempfile
import threading
from pathlib import Path

import core
from core.errors import internal
from core.repository import FolderRepository, Repository


@core.hookimpl
def core_open_repository(url):
    return ZipRepository(url) if url.startswith("zip://") else None


class ZipRepository(Repository):
    """Each new state of the file goes to a folder of its own: a model that runs keeps the files it has."""

    def __init__(self, url):
        self.location, self._file = url, Path(url.removeprefix("zip://"))
        self._folders = tempfile.TemporaryDirectory(prefix="core-zip-")
        self._newest = FolderRepository(self._folders.name)  # empty until the first look
        self._changed_ns, self._lock = None, threading.Lock()

    def check(self):
        try:
            self.look()
        except OSError as error:
            raise internal(f"cannot open model repository '{self.location}': {error}") from error

    def look(self):
        with self._lock:
            changed_ns = self._file.stat().st_mtime_ns
            if changed_ns == self._changed_ns:
                return
            folder = tempfile.mkdtemp(dir=self._folders.name)
            shutil.unpack_archive(self._file, folder, "zip")
            self._newest, self._changed_ns = FolderRepository(folder), changed_ns

    def names(self):
        return self._newest.names()

    def listing(self, name):
        self.look()  # a client may load a model at any time
        return self._newest.listing(name)

    def read_text(self, name, path):
        return self._newest.read_text(name, path)

    def directory(self, name):
        return self._newest.directory(name)

    def close(self):
        self._folders.cleanup()
