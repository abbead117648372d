"""Framing: finds the ends of requests in the bytes of a connection. Loop thread only."""

class Framing:
    """Cuts the bytes for aiohttp into parts, so that no part has bytes of two requests.

    Each part is one call of aiohttp. If a call has malformed bytes, aiohttp answers no request in it. After a
    request to upgrade to an unknown protocol, it drops the bytes that follow.
    """

    def next_part(self, data: bytes, at: int, idle: bool) -> int:
        """Return the end of the part of `data` that begins at `at`.

        idle   whether aiohttp has answered every request that it has received, and waits for the next
        """

    def drops_followers(self) -> bool:
        """Return whether aiohttp may drop the bytes after the last part: it asks for an upgrade."""
