"""Audit: a line of the log for each control operation that changes something.

frontend ─► [called_by] ─► operation ─► [audited] ─► line of the log

    "audit: repository.load by caller 'deploy' at 10.0.0.7 done: model m"

A line names the subject, never the content of a request. The name is last, because clients choose it: what is
before it cannot be forged. The process that a client has called writes the line.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

from core.errors import CoreError

logger = logging.getLogger("core")

T = TypeVar("T")

OWN_PROCESS = (
    "the server's own process"  # a Python model, or the application that the server runs in
)

_caller: ContextVar[str] = ContextVar("caller", default=OWN_PROCESS)


@contextmanager
def called_by(caller: str) -> Iterator[None]:
    """Name the caller of the operations that are called within the block."""
    token = _caller.set(caller)
    try:
        yield
    finally:
        _caller.reset(token)


def caller() -> str:
    """Return who has called the operation that runs, as lines of the audit name it."""
    return _caller.get()


async def audited(operation: str, subject: str, work: Awaitable[T]) -> T:
    """Await `work`, and write a line with its outcome. Raises what `work` raises."""
    outcome = "failed (unexpected error)"
    try:
        result = await work
        outcome = "done"
        return result
    except CoreError as error:
        outcome = f"failed ({error.kind.title})"
        raise
    except asyncio.CancelledError:
        outcome = "cancelled"
        raise
    finally:
        named = f": {subject}" if subject else ""
        logger.info("audit: %s by %s %s%s", operation, caller(), outcome, named)
