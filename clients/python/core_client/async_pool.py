"""AsyncSharedMemoryPool: the pool for clients of tritonclient.http.aio and tritonclient.grpc.aio."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from core_client.allocator import Block
from core_client.base_pool import BasePool, size_of, sizes_of, wire_form
from core_client.shared_array import SharedArray


class AsyncSharedMemoryPool(BasePool):
    """Memory that client and server share, for one event loop; BasePool describes the arguments.

    `async with` closes it. Garbage collection and the end of the interpreter remove its names from /dev/shm
    and close its socket, but the server keeps regions that were registered by name.
    """

    def __init__(self, client: Any = None, **how: Any):
        super().__init__(client, **how)
        self._growing = asyncio.Lock()

    async def empty(self, shape: int | Iterable[int], dtype: Any = np.float32) -> SharedArray:
        """Return an array with any content.

        dtype   one of numpy, or a name of the protocol such as "BF16"; for BYTES use `share` or `buffer`
        Raises TypeError for another dtype; MemoryError; ValueError if the pool is closed; the error of the
        client or the socket if registration fails.
        """
        sizes = sizes_of(shape)
        return self._array(await self._block(size_of(sizes, dtype)), sizes, dtype)

    async def share(self, array: npt.ArrayLike) -> SharedArray:
        """Return a copy of an array; text and bytes become BYTES. Raises the errors of `empty`."""
        found = np.asarray(array)
        if (data := wire_form(found)) is not None:
            shared = await self.buffer(len(data), found.shape)
            shared.array[:] = np.frombuffer(data, np.uint8)
        else:
            shared = await self.empty(found.shape, found.dtype)
            shared.array[...] = found
        return shared

    async def buffer(self, byte_size: int, shape: Iterable[int] = ()) -> SharedArray:
        """Return `byte_size` bytes for an output of type BYTES; `texts` of the result reads the elements.

        shape   of an input that is made of them (SharedArray.input); an output needs none

        Raises the errors of `empty`.
        """
        return self._bytes(await self._block(byte_size), byte_size, shape)

    async def close(self) -> None:
        """Unregister and remove all memory; arrays stay readable here. Does nothing if it is closed.

        The first error of an unregistration ends the unregistrations, and is not raised.
        """
        if self._closed:
            return
        for segment in self._end("the pool is closed"):
            try:
                await _done(self._registration.unregister(segment))
            except Exception:  # each client has its own errors
                break  # the server has ended, and its regions with it
        self._close_files()

    __del__ = BasePool.close_at_exit

    async def __aenter__(self) -> AsyncSharedMemoryPool:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _block(self, byte_size: int) -> Block:
        if (found := self._taken(byte_size)) is not None:
            return found
        async with self._growing:
            # Another task may have added a segment meanwhile.
            if (found := self._taken(byte_size)) is not None:
                return found
            for left in self._withdrawn(byte_size):
                try:
                    await _done(self._registration.unregister(left))
                finally:
                    left.close()
            segment = self._made(byte_size)
            try:
                await _done(self._registration.register(segment))
            except BaseException:
                segment.close()
                raise
            if self._closed:  # by another task, which did not know this segment
                segment.close()
                with contextlib.suppress(Exception):  # the connection may be closed already
                    await _done(self._registration.unregister(segment))
                raise ValueError(self._closed)
            return self._added(segment, byte_size)


async def _done(found: Any) -> None:
    """Await the result of an asyncio client's call; calls over a socket are finished already."""
    if inspect.isawaitable(found):
        await found
