"""AddressSource: knows addresses of servers, which may change.

--servers ─► read_servers ─► [AddressSource] ─► addresses, again and again ─► ServerList
"""

from __future__ import annotations

from collections.abc import Callable

from core_router.servers.server import Address


class AddressSource:
    """One of --servers. `str` names it in the log."""

    async def addresses(self) -> list[Address]:
        """Return the addresses now. Raises OSError if they cannot be found at the moment."""
        raise NotImplementedError

    async def watch(self, changed: Callable[[], None]) -> None:
        """Call `changed` when there are other addresses, until cancelled.

        A source that does not notice returns: it is asked every --resolve-secs.
        """
