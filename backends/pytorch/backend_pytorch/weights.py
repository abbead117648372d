"""Weights: the memory of the weights of one model version.

program ─► [Weights] ─► statistics.  Instances may share tensors, and tensors may share a storage. A storage
counts once, as long as a program has it.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import Any
from weakref import WeakKeyDictionary

from backend_pytorch.program import Program
from core.backend import MemoryUsage

_Storages = dict[tuple[str, int, int], int]  # "CPU" or "GPU", number, address → bytes


class Weights:
    """The storages of the programs of one model version. Thread-safe; calls are short."""

    def __init__(self) -> None:
        self._of: WeakKeyDictionary[Program, _Storages] = WeakKeyDictionary()
        self._changing = threading.Lock()

    def add(self, program: Program) -> None:
        """Count the bytes of a program's tensors until the program is freed; shared memory counts once."""
        found = _storages(program.tensors())
        with self._changing:
            self._of[program] = found

    def usage(self) -> list[MemoryUsage]:
        """Return the bytes of all counted storages, one entry for each device; [] if there are none."""
        with self._changing:
            storages: _Storages = {}
            for each in self._of.values():
                storages.update(each)
        sizes: dict[tuple[str, int], int] = {}
        for (kind, number, _), size in storages.items():
            sizes[kind, number] = sizes.get((kind, number), 0) + size
        return [MemoryUsage(kind, number, size) for (kind, number), size in sizes.items()]


def _storages(tensors: Iterable[Any]) -> _Storages:
    found: _Storages = {}
    for tensor in tensors:
        kind = "GPU" if tensor.is_cuda else "CPU"
        storage = tensor.untyped_storage()
        found[kind, tensor.device.index or 0, storage.data_ptr()] = storage.nbytes()
    return found
