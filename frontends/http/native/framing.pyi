"""Where requests end in the bytes of a connection. Loop thread only."""

class Framing:
    """Cuts what comes for aiohttp into parts, so that no part has bytes of two requests.

    aiohttp answers nothing of what it gets in one go if there is an error in it, and drops what comes
    behind a request to upgrade to a protocol that it does not know.
    """

    def next_part(self, data: bytes, at: int, idle: bool) -> int:
        """Return where the part of `data` that begins at `at` ends.

        idle   whether the engine has answered everything that it has seen, and waits for a request
        """

    def drops_followers(self) -> bool:
        """Whether the last part may belong to a request behind whose body the engine drops what follows."""
