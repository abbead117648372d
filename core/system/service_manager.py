"""Notifications to the service manager that started the process: systemd, or any listener at $NOTIFY_SOCKET.

process, supervisor ─► [tell] ─► a datagram.  Without $NOTIFY_SOCKET these functions do nothing. The messages
are those of sd_notify(3). A systemd unit that waits for them has Type=notify.
"""

from __future__ import annotations

import logging
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager

logger = logging.getLogger("core")

_WAIT_S = 1.0  # for a manager whose queue is full: it must not delay the server for longer


def ready() -> None:
    """Notify the manager that the server is ready."""
    tell("READY=1", "STATUS=Serving")


@contextmanager
def reloading() -> Iterator[None]:
    """Notify the manager of the start and the end of a reload; reload the files inside this context."""
    tell("RELOADING=1", f"MONOTONIC_USEC={time.monotonic_ns() // 1000}")
    try:
        yield
    finally:
        ready()


def listens() -> bool:
    """Return whether there is a service manager to notify."""
    return bool(os.environ.get("NOTIFY_SOCKET"))


def stopping() -> None:
    """Notify the manager that the server stops: it refuses new requests and finishes the running ones."""
    tell("STOPPING=1", "STATUS=Finishing what is in flight")


def tell(*assignments: str) -> None:
    """Send these lines, such as "READY=1". Any thread; waits at most one second. An error is logged."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address:
        return
    where = "\0" + address[1:] if address.startswith("@") else address  # Linux: no file
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as end:
            end.settimeout(_WAIT_S)
            end.connect(where)
            end.sendall("\n".join(assignments).encode())
    except OSError as error:
        logger.warning(
            "cannot tell the service manager at '%s' %s: %s", address, assignments[0], error
        )
