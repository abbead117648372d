"""A server in a terminal of its own: what a person sees, and keys that a person presses."""

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time

from tests.becoming import AT_A_TERMINAL

_CONTROL = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")
_WAIT_S = 90

ADDRESSES = [
    f"--{name}-{what}"
    for name in ("http", "grpc", "metrics")
    for what in ("address=127.0.0.1", "port=0")
]
"""Flags of a server on free ports of this machine."""


class Console:
    """A server with a terminal of `columns` characters as stdin, stdout and stderr."""

    def __init__(self, *arguments, columns=80, cwd=None, environment=None):
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
        variables = {**os.environ, "TERM": "xterm-256color", **(environment or {})}
        for name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "LINES"):
            if name not in (environment or {}):
                variables.pop(name, None)
        self._process = subprocess.Popen(
            [*AT_A_TERMINAL, sys.executable, "-m", "core.serve", *ADDRESSES, *arguments],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            cwd=cwd,
            env=variables,
        )
        os.close(slave)
        self.raw = ""

    @property
    def text(self):
        """What was shown so far, without colours."""
        return _CONTROL.sub("", self.raw).replace("\r\n", "\n")

    @property
    def lines(self):
        return self.text.splitlines()

    def until(self, pattern):
        """Read until the text has a match; return it."""
        end = time.monotonic() + _WAIT_S
        while not (found := re.search(pattern, self.text)):
            assert self._read(end), f"no '{pattern}' in:\n{self.text}"
        return found

    def press(self, key):
        os.write(self._master, key)

    def end(self):
        """Read to the end; return the exit status."""
        end = time.monotonic() + _WAIT_S
        while self._read(end):
            pass
        return self._process.wait(30)

    def kill(self):
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        os.close(self._master)

    def _read(self, end):
        """Read once; return whether there was anything before the end, or before that time."""
        ready, _, _ = select.select([self._master], [], [], max(0.0, end - time.monotonic()))
        if not ready:
            return False
        try:
            data = os.read(self._master, 65536)
        except OSError:  # the other side is closed
            return False
        self.raw += data.decode()
        return bool(data)
