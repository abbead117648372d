"""A server that is slow until a test says so."""

import asyncio

from routing.running import said


class Slow:
    """Responds when it has been allowed to. left: connections that were closed before."""

    def __init__(self, status=200):
        self.status, self.left = status, 0
        self.goes_on = asyncio.Event()

    async def __call__(self, reader, writer, line, body):
        ends = asyncio.ensure_future(reader.read(1))
        goes_on = asyncio.ensure_future(self.goes_on.wait())
        await asyncio.wait([ends, goes_on], return_when=asyncio.FIRST_COMPLETED)
        if goes_on.done():
            ends.cancel()
            writer.write(said(b"slow", self.status))
        else:
            goes_on.cancel()
            self.left += 1
            writer.close()
