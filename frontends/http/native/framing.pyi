"""Framing: finds the ends of requests in the bytes of a connection. Loop thread only."""

class Framing:
    """Cuts the bytes for aiohttp into parts, so that normally no part has bytes of two requests.

    Each part is one call of aiohttp: if a call has malformed bytes, aiohttp answers no request in it. After a
    request to upgrade to an unknown protocol, aiohttp drops the bytes that follow in the call.
    """

    def next_part(self, data: bytes, at: int, idle: bool) -> int:
        """Return the end position of the part of `data` that begins at `at`. Call it for each part in order.

        idle   whether aiohttp has answered every request that it has received, and waits for the next
        """

    def is_at_start(self) -> bool:
        """Return whether the next byte begins a request, provided that aiohttp is idle."""

    def drops_followers(self) -> bool:
        """Return whether the last part may ask for an upgrade: then aiohttp may drop the bytes after it."""
