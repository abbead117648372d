"""Compiled functions: one for each shape of the arguments, kept while they are used.

Exported ─► [CompiledFunctions] ─► compiled function ─► arrays.  XLA compiles for fixed shapes, which takes
from 0.1 seconds to minutes. Batches are therefore filled up to one of a few sizes.
"""

from __future__ import annotations

import os
import threading
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import jax
import numpy as np
from jax import tree_util

from backend_jax.tensors import Ports

_WIDE = ("int64", "uint64", "float64", "complex128")
Shapes = tuple[tuple[int, ...], ...]


class CompiledFunctions:
    """The compiled forms of one exported function on one device. Thread-safe.

    most   forms that are kept: the one that was used longest ago is dropped
    """

    def __init__(self, exported: Any, ports: Ports, device: Any, most: int):
        self._exported = exported
        self._device = device
        self._most = most
        self._dtypes = [each.dtype for each in exported.in_avals]
        self._wide = any(port.type in _WIDE for port in ports.all)
        self._lock = threading.Lock()
        self._compiling = threading.Lock()
        self._compiled: OrderedDict[Shapes, Any] = OrderedDict()

    def run(self, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Return the results; they may be read only. Raises the errors of JAX.

        arrays   in the order of the file, with the shapes and datatypes of the function
        """
        shapes = tuple(array.shape for array in arrays)
        with self._settings():
            compiled = self._found(shapes) or self.compile(shapes)
            args, kwargs = tree_util.tree_unflatten(self._exported.in_tree, arrays)
            results = compiled(*args, **kwargs)
            return [np.asarray(each) for each in tree_util.tree_leaves(results)]

    def compile(self, shapes: Shapes) -> Any:
        """Return the function for these shapes. One thread compiles at a time. Raises the errors of JAX."""
        with self._compiling, self._settings():
            if (found := self._found(shapes)) is not None:
                return found
            wanted = [
                jax.ShapeDtypeStruct(shape, dtype)
                for shape, dtype in zip(shapes, self._dtypes, strict=True)
            ]
            args, kwargs = tree_util.tree_unflatten(self._exported.in_tree, wanted)
            with jax.default_device(self._device):
                compiled = jax.jit(self._exported.call).lower(*args, **kwargs).compile()
            with self._lock:
                self._compiled[shapes] = compiled
                while len(self._compiled) > self._most:
                    self._compiled.popitem(last=False)
            return compiled

    def _found(self, shapes: Shapes) -> Any:
        with self._lock:
            if (found := self._compiled.get(shapes)) is not None:
                self._compiled.move_to_end(shapes)
            return found

    def _settings(self) -> AbstractContextManager[Any]:
        """Allow datatypes of 64 bits, on this thread, for functions that have them."""
        return jax.enable_x64(True) if self._wide else nullcontext()


def run_on_the_calling_thread() -> None:
    """Let JAX run functions for the CPU on the thread that calls them; call it before any device is used.

    By default JAX hands each run to a thread of its own, for which the backend would wait at once: that costs
    two thread switches. The variable JAX_CPU_ENABLE_ASYNC_DISPATCH takes precedence.
    """
    if "JAX_CPU_ENABLE_ASYNC_DISPATCH" not in os.environ:
        jax.config.update("jax_cpu_enable_async_dispatch", False)


def powers_of_two(most: int) -> tuple[int, ...]:
    """Return 1, 2, 4, … and `most`."""
    found = [1]
    while found[-1] * 2 < most:
        found.append(found[-1] * 2)
    return tuple(dict.fromkeys([*found, most]))


def size_for(rows: int, sizes: Sequence[int]) -> int:
    """Return the smallest of the ascending sizes that has room for the rows; else the rows."""
    place = bisect_left(sizes, rows)
    return sizes[place] if place < len(sizes) else rows


def filled_up(array: np.ndarray, rows: int) -> np.ndarray:
    """Return the array with its last row repeated up to so many rows."""
    missing = rows - len(array)
    return np.concatenate([array, np.repeat(array[-1:], missing, axis=0)]) if missing else array
