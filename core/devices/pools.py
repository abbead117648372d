"""Pools: memory for copies between host and GPUs, which a plugin keeps ready. Without one there are no pools.

plugin ─► [use] … [current] ─► backends, metrics
"""

from __future__ import annotations

from typing import Any

import numpy as np


class Pools:
    """The pools of this process: none, unless a plugin overrides these methods. Thread-safe.

    Memory returns to its pool with the last object that refers to it: keep one until no device uses it.
    """

    def open(self, number: int) -> None:
        """Get ready for an instance on a GPU. Blocks: call it in the instance's `open`."""

    def on_host(self, size: int) -> np.ndarray | None:
        """Return pinned memory, uint8[size], or ordinary memory if the pool is full; None: no pool."""
        return None

    def on_gpu(self, number: int, size: int) -> Any | None:
        """Return memory of a GPU, with `ptr` and `__cuda_array_interface__`; None if no pool has room."""
        return None

    def growable(self, number: int) -> Any | None:
        """Return a new range of addresses on a GPU, for one state of one sequence; None if there is none.

        It has its first `address`, its `limit` in bytes, and `memory(size)`: its first `size` bytes, which
        keep what was written to them, in the form of `on_gpu`; None if the GPU has no more memory.
        """
        return None

    def pinned_bytes(self) -> tuple[int, int]:
        """Return the size of the pool of pinned memory, and how much of it is in use."""
        return 0, 0


_used = [Pools()]


def use(pools: Pools) -> None:
    """Make `pools` those of this process until `leave`; the last ones, if it has several servers."""
    _used.append(pools)


def leave(pools: Pools) -> None:
    """Stop giving memory out. What was given out stays valid."""
    _used.remove(pools)


def current() -> Pools:
    """Return the pools of this process."""
    return _used[-1]
