"""AsyncSharedMemoryPool: the pool for clients of tritonclient.http.aio and tritonclient.grpc.aio."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from core.client.shared_array import SharedArray
from core.client.shelf import Block
from core.client.stock import Stock, size_of, sizes_of, wire_form


class AsyncSharedMemoryPool(Stock):
    """Memory that the server has too; arguments as Stock. One event loop.

    `async with` closes it. Who forgets it, and the end of the interpreter, take names out of /dev/shm and
    hang up a socket; the server keeps what was registered by name.
    """

    def __init__(self, client: Any = None, **how: Any):
        super().__init__(client, **how)
        self._growing = asyncio.Lock()

    async def empty(self, shape: int | Iterable[int], dtype: Any = np.float32) -> SharedArray:
        """An array with any content.

        dtype   as numpy has it, or a name of the protocol ("BF16"); BYTES are made by share and room
        Raises MemoryError, ValueError when the pool is closed, and what registering raises.
        """
        sizes = sizes_of(shape)
        return self._array(await self._block(size_of(sizes, dtype)), sizes, dtype)

    async def share(self, array: npt.ArrayLike) -> SharedArray:
        """A copy of an array; of text and bytes as BYTES. Raises as `empty`."""
        found = np.asarray(array)
        if (data := wire_form(found)) is not None:
            shared = await self.room(len(data), found.shape)
            shared.array[:] = np.frombuffer(data, np.uint8)
        else:
            shared = await self.empty(found.shape, found.dtype)
            shared.array[...] = found
        return shared

    async def room(self, byte_size: int, shape: Iterable[int] = ()) -> SharedArray:
        """Bytes for an output of type BYTES, of which nobody knows before how many it will have.

        `texts` reads them. Raises as `empty`.
        """
        return self._bytes(await self._block(byte_size), byte_size, shape)

    async def close(self) -> None:
        """Unregister everything and leave nothing behind. Arrays stay readable; the server forgets them.

        A server that has gone is no error.
        """
        if self._closed:
            return
        for segment in self._end("the pool is closed"):
            try:
                await _done(self._registrar.unregister(segment))
            except Exception:  # each client has its own
                break  # it has gone, and with it its regions
        self._close_files()

    __del__ = Stock.close_at_exit

    async def __aenter__(self) -> AsyncSharedMemoryPool:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _block(self, byte_size: int) -> Block:
        if (found := self._taken(byte_size)) is not None:
            return found
        async with self._growing:
            # Somebody else may have added what is needed here.
            if (found := self._taken(byte_size)) is not None:
                return found
            for left in self._withdrawn(byte_size):
                try:
                    await _done(self._registrar.unregister(left))
                finally:
                    left.close()
            segment = self._made(byte_size)
            try:
                await _done(self._registrar.register(segment))
            except BaseException:
                segment.close()
                raise
            if self._closed:  # by another task, which has not seen this segment
                segment.close()
                with contextlib.suppress(Exception):  # the connection may be closed already
                    await _done(self._registrar.unregister(segment))
                raise ValueError(self._closed)
            return self._added(segment, byte_size)


async def _done(found: Any) -> None:
    """What a client of asyncio gives is awaited; a socket has it done already, within microseconds."""
    if inspect.isawaitable(found):
        await found
