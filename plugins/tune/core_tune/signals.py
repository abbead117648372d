"""Signals that end a command: held back for a moment, or raised as KeyboardInterrupt.

By handlers, which Python sets and runs on the main thread only: elsewhere, these do nothing.
"""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator


@contextlib.contextmanager
def held() -> Iterator[None]:
    """Hold SIGINT and SIGTERM back until the end.

    They are not blocked: a signal that this thread blocks reaches another thread.
    """
    came: list[int] = []
    try:
        with _handled(lambda number, frame: came.append(number), signal.SIGINT, signal.SIGTERM):
            yield
    finally:
        for number in came:
            signal.raise_signal(number)


@contextlib.contextmanager
def sigterm_interrupts() -> Iterator[None]:
    """Let SIGTERM raise KeyboardInterrupt until the end, as Ctrl-C does."""
    with _handled(signal.default_int_handler, signal.SIGTERM):
        yield


@contextlib.contextmanager
def _handled(handler: Callable[..., object], *numbers: signal.Signals) -> Iterator[None]:
    """Give signals a handler until the end."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = [(each, signal.signal(each, handler)) for each in numbers]
    try:
        yield
    finally:
        for each, found in before:
            signal.signal(each, found or signal.SIG_DFL)
