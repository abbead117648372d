"""MemoryAccount: how many bytes the requests and answers of all connections hold together.

connection ─► Share ─► MemoryAccount.  A frontend takes bytes before it keeps them and gives them back when
they are gone: bodies and messages that arrive, what decompression makes of them, and answers that wait for
their clients. Without this account each connection keeps within its own bounds while thousands of them
together exhaust the memory of the machine.

The split is fair without a count of connections: a share may hold as many bytes as are still free. One
connection alone can hold half of the limit; each of n greedy ones gets 1/(n + 1) of it, and as much stays
free for those that come next. (Choudhury and Hahne describe this rule for packet buffers as "dynamic
queue length thresholds", IEEE/ACM Transactions on Networking 6(2), 1998.)
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from core.errors import MemoryExhausted
from core.options import Options

# A frontend counts what a connection holds beyond this many bytes, so that small requests cost nothing here.
UNCOUNTED = 64 * 1024
# Where the limits of a control group are: version 2 shows the group's own root to a container, version 1 too.
_LIMITS = ("memory.max", "memory/memory.limit_in_bytes")
# When nothing tells, a small machine is assumed.
_UNKNOWN = 4 * 2**30


class MemoryAccount:
    """The account of one server process. Event loop thread only.

    limit          bytes that all shares may hold
    unpaid_limit   bytes that all shares may hold of decompressed data that their senders did not pay for
    held, unpaid   bytes of both kinds that are held now
    refusals       how often a share asked for more than it may hold
    on_give        called with the number of bytes when some are given back; the server gives freed memory
                   back to the system with it
    """

    def __init__(self, limit: int, unpaid_limit: int):
        self.limit = limit
        self.unpaid_limit = unpaid_limit
        self.held = 0
        self.unpaid = 0
        self.refusals = 0
        self.on_give: Callable[[int], None] | None = None

    @classmethod
    def of(cls, options: Options) -> MemoryAccount:
        """Make the account that the options describe: by default half of the memory there is, split
        evenly over the worker processes."""
        limit = options.request_memory_byte_size or available_bytes() // 2
        workers = max(1, options.workers)
        return cls(limit // workers, options.unpaid_memory_byte_size // workers)

    def share(self) -> Share:
        """Open the share of a new connection."""
        return Share(self)


class Share:
    """What one connection holds. Event loop thread only.

    held     bytes that it has taken and not given back
    unpaid   bytes of decompressed data that it has taken beyond what it paid for
    """

    __slots__ = ("_account", "held", "unpaid")

    def __init__(self, account: MemoryAccount):
        self._account = account
        self.held = 0
        self.unpaid = 0

    def try_take(self, size: int) -> bool:
        """Take `size` bytes if there is room for them; return whether there was."""
        account = self._account
        if self.held + size > account.limit - account.held - size:
            account.refusals += 1
            return False
        self.held += size
        account.held += size
        return True

    def take(self, size: int, what: str) -> None:
        """Take `size` bytes for `what`, which the error names. Raises MemoryExhausted."""
        if not self.try_take(size):
            account = self._account
            raise MemoryExhausted(
                f"no memory for {what} of {size} bytes: this connection holds {self.held} bytes and all "
                f"connections hold {account.held} of {account.limit}; retry later or increase "
                "--request-memory-byte-size"
            )

    def give(self, size: int) -> None:
        """Give back `size` bytes that were taken."""
        account = self._account
        self.held -= size
        account.held -= size
        if account.on_give is not None:
            account.on_give(size)

    def take_unpaid(self, size: int, what: str) -> None:
        """Take `size` bytes of `what` that decompression made and the sender did not pay for. Raises
        MemoryExhausted.

        These bytes have a small limit of their own. `take` counts the same bytes as memory.
        """
        account = self._account
        if self.unpaid + size > account.unpaid_limit - account.unpaid - size:
            account.refusals += 1
            raise MemoryExhausted(
                f"no memory for {what}: it unpacks to {size} bytes more than a message of its size may, this "
                f"connection holds {self.unpaid} such bytes and all connections hold {account.unpaid} of "
                f"{account.unpaid_limit}; send it with less compression or increase "
                "--unpaid-memory-byte-size"
            )
        self.unpaid += size
        account.unpaid += size

    def give_unpaid(self, size: int) -> None:
        """Give back `size` bytes that `take_unpaid` took."""
        self.unpaid -= size
        self._account.unpaid -= size

    def close(self) -> None:
        """Give back everything: the connection is gone. A closed share may be closed again."""
        self.give(self.held)
        self.give_unpaid(self.unpaid)


def available_bytes(cgroup: Path = Path("/sys/fs/cgroup")) -> int:
    """Return the bytes of memory that this process may use: the machine's, or less in a container.

    cgroup   where the control group of the process is mounted
    """
    limits = [_physical_bytes()]
    for name in _LIMITS:
        try:
            limits.append(int((cgroup / name).read_text()))
        except (OSError, ValueError):  # no such file, or "max"
            continue
    return min(limits)


def _physical_bytes() -> int:
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):  # Windows, or a system that does not tell
        return _UNKNOWN
