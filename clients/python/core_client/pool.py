"""SharedMemoryPool: memory for inputs and outputs, registered once and used for many requests.

empty, share, buffer ─► [pool] ─► SharedArray ─► set_shared_memory of tritonclient ─► infer
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from core_client.allocator import Block
from core_client.base_pool import BasePool, size_of, sizes_of, wire_form
from core_client.shared_array import SharedArray


class SharedMemoryPool(BasePool):
    """Memory that client and server share; BasePool describes the arguments.

    Thread-safe if its client is. The pool closes at the end of a `with` block, when neither the pool nor one
    of its SharedArray objects is referenced any more, and when the interpreter exits.
    """

    def __init__(self, client: Any = None, **how: Any):
        super().__init__(client, **how)
        self._growing = threading.Lock()

    def empty(self, shape: int | Iterable[int], dtype: Any = np.float32) -> SharedArray:
        """Return an array with any content.

        dtype   one of numpy, or a name of the protocol such as "BF16"; for BYTES use `share` or `buffer`
        Raises TypeError for another dtype; MemoryError; ValueError if the pool is closed; the error of the
        client or the socket if registration fails.
        """
        sizes = sizes_of(shape)
        return self._array(self._block(size_of(sizes, dtype)), sizes, dtype)

    def share(self, array: npt.ArrayLike) -> SharedArray:
        """Return a copy of an array; text and bytes become BYTES. Raises the errors of `empty`."""
        found = np.asarray(array)
        if (data := wire_form(found)) is not None:
            shared = self.buffer(len(data), found.shape)
            shared.array[:] = np.frombuffer(data, np.uint8)
        else:
            shared = self.empty(found.shape, found.dtype)
            shared.array[...] = found
        return shared

    def buffer(self, byte_size: int, shape: Iterable[int] = ()) -> SharedArray:
        """Return `byte_size` bytes for an output of type BYTES; `texts` of the result reads the elements.

        shape   of an input that is made of them (SharedArray.input); an output needs none

        Raises the errors of `empty`.
        """
        return self._bytes(self._block(byte_size), byte_size, shape)

    def close(self) -> None:
        """Unregister and remove all memory; arrays stay readable here. Does nothing if it is closed.

        The first error of an unregistration ends the unregistrations, and is not raised.
        """
        if self._closed:
            return
        for segment in self._end("the pool is closed"):
            try:
                self._registration.unregister(segment)
            except Exception:  # each client has its own errors
                break  # the server has ended, and its regions with it
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
            # Another thread may have added a segment meanwhile.
            if (found := self._taken(byte_size)) is not None:
                return found
            for left in self._withdrawn(byte_size):
                try:
                    self._registration.unregister(left)
                finally:
                    left.close()
            segment = self._made(byte_size)
            try:
                self._registration.register(segment)
            except BaseException:
                segment.close()
                raise
            if self._closed:  # by another thread, which did not know this segment
                segment.close()
                with contextlib.suppress(Exception):  # the connection may be closed already
                    self._registration.unregister(segment)
                raise ValueError(self._closed)
            return self._added(segment, byte_size)
