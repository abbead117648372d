"""SharedMemoryPool: memory for inputs and outputs that is registered with the server once and used often.

empty, share, room ─► [pool] ─► SharedArray ─► set_shared_memory of tritonclient ─► infer
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from core.client.shared_array import SharedArray
from core.client.shelf import Block
from core.client.stock import Stock, size_of, sizes_of, wire_form


class SharedMemoryPool(Stock):
    """Memory that the server has too; arguments as Stock. Any thread, if the client may be used by any.

    `with` closes it; so do the end of the interpreter, and who forgets it and all its arrays.
    """

    def __init__(self, client: Any = None, **how: Any):
        super().__init__(client, **how)
        self._growing = threading.Lock()

    def empty(self, shape: int | Iterable[int], dtype: Any = np.float32) -> SharedArray:
        """An array with any content.

        dtype   as numpy has it, or a name of the protocol ("BF16"); BYTES are made by share and room
        Raises MemoryError, ValueError when the pool is closed, and what registering raises.
        """
        sizes = sizes_of(shape)
        return self._array(self._block(size_of(sizes, dtype)), sizes, dtype)

    def share(self, array: npt.ArrayLike) -> SharedArray:
        """A copy of an array; of text and bytes as BYTES. Raises as `empty`."""
        found = np.asarray(array)
        if (data := wire_form(found)) is not None:
            shared = self.room(len(data), found.shape)
            shared.array[:] = np.frombuffer(data, np.uint8)
        else:
            shared = self.empty(found.shape, found.dtype)
            shared.array[...] = found
        return shared

    def room(self, byte_size: int, shape: Iterable[int] = ()) -> SharedArray:
        """Bytes for an output of type BYTES, of which nobody knows before how many it will have.

        `texts` reads them. Raises as `empty`.
        """
        return self._bytes(self._block(byte_size), byte_size, shape)

    def close(self) -> None:
        """Unregister everything and leave nothing behind. Arrays stay readable; the server forgets them.

        A server that has gone is no error.
        """
        if self._closed:
            return
        for segment in self._end("the pool is closed"):
            try:
                self._registrar.unregister(segment)
            except Exception:  # each client has its own
                break  # it has gone, and with it its regions
        self._close_files()

    close_at_exit = __del__ = close

    def __enter__(self) -> SharedMemoryPool:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _block(self, byte_size: int) -> Block:
        if (found := self._taken(byte_size)) is not None:
            return found
        with self._growing:
            # Somebody else may have added what is needed here.
            if (found := self._taken(byte_size)) is not None:
                return found
            for left in self._withdrawn(byte_size):
                try:
                    self._registrar.unregister(left)
                finally:
                    left.close()
            segment = self._made(byte_size)
            try:
                self._registrar.register(segment)
            except BaseException:
                segment.close()
                raise
            if self._closed:  # by another thread, which has not seen this segment
                segment.close()
                with contextlib.suppress(Exception):  # the connection may be closed already
                    self._registrar.unregister(segment)
                raise ValueError(self._closed)
            return self._added(segment, byte_size)
