"""Completed: the configurations that earlier loads have completed.

Some backends read the whole model to complete a configuration. A load on request would need that memory,
beside what it has reserved, and that time. So it gets the configuration of the load before, if the
files are the same.
"""

from __future__ import annotations

import threading
from copy import deepcopy
from pathlib import Path
from typing import TypeVar

from core.config import ModelConfig
from core.governing import ModelVersion
from core.repository import stamp_of

T = TypeVar("T")

MOST = 10_000  # configurations; the oldest are dropped

Stamp = tuple[bytes, str]  # the configuration before its completion, and the stamp of the files


class Completed:
    """Configurations by the folders of versions. Any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._asked: dict[Path, Stamp] = {}  # of loads that have not come to `learn` yet
        self._known: dict[Path, tuple[Stamp, ModelConfig]] = {}

    def find(self, config: ModelConfig, path: Path) -> ModelConfig | None:
        """Return what the last load completed; None if that was of another configuration or other files.

        config   before its completion
        path     folder of the version
        """
        try:
            stamp = (config.SerializeToString(deterministic=True), stamp_of(path))
        except OSError:  # the load itself says that the folder cannot be read
            return None
        with self._lock:
            known = self._known.get(path)
            if known is not None and known[0] == stamp:
                return deepcopy(known[1])
            _put(self._asked, path, stamp)
        return None

    def learn(self, version: ModelVersion) -> None:
        """Keep the configuration of a version that is completed now."""
        with self._lock:
            stamp = self._asked.pop(version.path, None)
            if stamp is not None:
                _put(self._known, version.path, (stamp, deepcopy(version.config)))


def _put(table: dict[Path, T], path: Path, value: T) -> None:
    """Write an entry as the newest one; drop the oldest one if there are too many."""
    table.pop(path, None)
    table[path] = value
    if len(table) > MOST:
        del table[next(iter(table))]


completed = Completed()
"""The configurations of this process. Servers of one process may share them: folders identify them."""
