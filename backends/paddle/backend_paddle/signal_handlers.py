"""Keep the signal handlers of the process while a library installs its own."""

from __future__ import annotations

import ctypes
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_STRUCT_BYTES = 1024  # more than the struct sigaction of any C library


@contextmanager
def kept_signal_handlers() -> Iterator[None]:
    """Restore the handlers of all signals at the end, those of C code too. Any thread may call it.

    `signal.signal` cannot do it: it works in the main thread only, and knows Python's handlers only. Where
    there is no `sigaction`, nothing is restored.
    """
    call: Any = getattr(ctypes.CDLL(None), "sigaction", None) if os.name == "posix" else None
    kept = {}
    for number in map(int, signal.valid_signals() if call else ()):
        old = ctypes.create_string_buffer(_STRUCT_BYTES)
        if call(number, None, old) == 0:
            kept[number] = old
    try:
        yield
    finally:
        for number, old in kept.items():
            call(number, old, None)  # fails for SIGKILL and SIGSTOP, whose handlers never change
