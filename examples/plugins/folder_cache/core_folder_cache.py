"""A response cache: --cache-config=folder,path=PATH keeps each response as a file in the folder."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import core
from core.caches import Cache, pack, unpack
from core.errors import invalid


@core.hookimpl
def core_open_cache(name, settings):
    if name != "folder":
        return None
    if "path" not in settings:
        raise invalid("cache 'folder' needs --cache-config=folder,path=<folder>")
    return FolderCache(Path(settings["path"]))


class FolderCache(Cache):
    """A thread uses the disk: `ask` and `insert` must not block. `pack` copies the outputs."""

    def __init__(self, folder):
        super().__init__()
        folder.mkdir(parents=True, exist_ok=True)
        self._folder, self._thread = folder, ThreadPoolExecutor(1)
        self._loop, self._room = asyncio.get_running_loop(), threading.Semaphore(100)

    def ask(self, key, found):
        self.counters.lookups += 1
        self._thread.submit(self._read, self._folder / key.hex(), found)

    def insert(self, key, outputs):
        if self._room.acquire(blocking=False):  # else a slow disk is 100 responses behind
            self._thread.submit(self._write, self._folder / key.hex(), pack(outputs))

    async def close(self):
        await asyncio.to_thread(self._thread.shutdown)

    def _read(self, path, found):
        outputs = None
        try:
            outputs = unpack(path.read_bytes()) if path.exists() else None
        except (OSError, ValueError):
            self.counters.failures += 1
        self.counters.hits += outputs is not None
        self._loop.call_soon_threadsafe(found, outputs)

    def _write(self, path, data):
        try:
            new = path.with_suffix(f".{threading.get_native_id()}")
            new.write_bytes(data)
            new.replace(path)  # a reader sees a complete file or none
            self.counters.insertions += 1
        except OSError:
            self.counters.failures += 1
        self._room.release()
