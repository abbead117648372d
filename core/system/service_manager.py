"""What the service manager that started the process is told: systemd, or whoever listens at $NOTIFY_SOCKET.

process, supervisor ─► [tell] ─► a datagram.  Without that variable nothing happens. The words are those of
sd_notify(3); a unit that waits for them has Type=notify.
"""

from __future__ import annotations

import logging
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager

logger = logging.getLogger("core")

_WAIT_S = 1.0  # for a manager whose queue is full; who does not read must not hold up the server


def ready() -> None:
    """All that shall be served is."""
    tell("READY=1", "STATUS=Serving")


@contextmanager
def reloading() -> Iterator[None]:
    """What is read again at run time is read inside."""
    tell("RELOADING=1", f"MONOTONIC_USEC={time.monotonic_ns() // 1000}")
    try:
        yield
    finally:
        ready()


def listens() -> bool:
    """Whether somebody wants to be told."""
    return bool(os.environ.get("NOTIFY_SOCKET"))


def stopping() -> None:
    """Nothing more is taken; what is in flight is finished."""
    tell("STOPPING=1", "STATUS=Finishing what is in flight")


def tell(*assignments: str) -> None:
    """Send these lines, such as "READY=1". Any thread; waits a second at most. An error is logged."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address:
        return
    where = "\0" + address[1:] if address.startswith("@") else address  # Linux: no file
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as end:
            end.settimeout(_WAIT_S)
            end.connect(where)
            end.sendall("\n".join(assignments).encode())
    except OSError as error:
        logger.warning(
            "cannot tell the service manager at '%s' %s: %s", address, assignments[0], error
        )
