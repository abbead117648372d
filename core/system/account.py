"""MemoryAccount: the bytes that the requests and responses of all connections hold together.

connection ─► Share ─► MemoryAccount.  A frontend takes bytes before it keeps data (received bodies and
messages, decompressed data, responses that wait for their clients), and gives them back after it has freed
the data. Without this account, thousands of connections within their own limits could exhaust the memory of
the machine.

The split is fair without a count of connections: a share may hold as many bytes as are still free. One
connection alone can hold half of the limit. Each of n greedy connections gets 1/(n + 1) of it, and the same
part stays free for new ones. (Choudhury and Hahne describe this rule for packet buffers as "dynamic queue
length thresholds", IEEE/ACM Transactions on Networking 6(2), 1998.)
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from core.errors import MemoryExhausted
from core.options import Options
from core.system import platform

# A frontend counts the bytes of a connection beyond this number, so that small requests cost nothing here.
UNCOUNTED = 64 * 1024
# Where the limits of a control group are: version 2 shows the group's own root to a container, version 1 too.
_LIMITS = ("memory.max", "memory/memory.limit_in_bytes")
# When nothing tells, a small machine is assumed.
_UNKNOWN = 4 * 2**30


class MemoryAccount:
    """The account of one server process. Event loop thread only.

    limit          bytes that all shares may hold
    unpaid_limit   decompressed bytes beyond the allowed ratio to the compressed size that all shares may hold
    held, unpaid   bytes of both kinds that are held now
    refusals       number of refused calls of `take`, `try_take` and `take_unpaid`
    on_give        called with the number of bytes that `give` gives back; the server uses it to return freed
                   memory to the system
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
        """Return the account of one worker process: an equal part of what the options allow to all of them.

        The default limit is half of the available memory.
        """
        limit = options.request_memory_byte_size or available_bytes() // 2
        workers = max(1, options.workers)
        return cls(limit // workers, options.unpaid_memory_byte_size // workers)

    def share(self) -> Share:
        """Return the share of a new connection."""
        return Share(self)


class Share:
    """The bytes that one connection holds. Event loop thread only.

    held     bytes taken and not given back
    unpaid   decompressed bytes taken beyond the allowed ratio to the compressed size
    """

    __slots__ = ("_account", "held", "unpaid")

    def __init__(self, account: MemoryAccount):
        self._account = account
        self.held = 0
        self.unpaid = 0

    def try_take(self, size: int) -> bool:
        """Take `size` bytes if that many are free for this share; return whether they were."""
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
        """Take `size` decompressed bytes of `what` beyond the allowed ratio. Raises MemoryExhausted.

        These bytes have a separate, small limit. `take` counts the same bytes as memory.
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
        """Give back all bytes of a closed connection. A second call does nothing."""
        self.give(self.held)
        self.give_unpaid(self.unpaid)


def available_bytes(cgroup: Path = platform.SYS / "fs/cgroup") -> int:
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
