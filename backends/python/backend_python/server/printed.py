"""Write the output of models to the server's log, under the name of the instance.

A child's standard output and error are pipes. One thread reads the pipes of all children. So a model can
print any amount while it loads, and the event loop does not wait for it.
"""

from __future__ import annotations

import logging
import os
import select
import threading
from collections.abc import Iterable

logger = logging.getLogger("core")

_READ = 1 << 16  # bytes at once
_LONGEST = 1 << 13  # bytes of a line; a longer line is continued in the next
# Most bytes that a pipe holds, unless a privileged process has raised the limit.
_CAPACITY = 1 << 20


class Printed:
    """The output of one child. Thread-safe. Call `begin` or `abandon` after creation.

    fds   for the child: standard output and standard error
    """

    def __init__(self, name: str):
        out, err = os.pipe(), os.pipe()
        self.fds = (out[1], err[1])
        self._streams = (
            _Stream(name, out[0], logging.INFO),
            _Stream(name, err[0], logging.WARNING),
        )

    def begin(self) -> None:
        """Close this process's copies of the child's ends of the pipes, and start reading.

        Call it when the child has its own copies.
        """
        for fd in self.fds:
            os.close(fd)
        _reader.add(self._streams)

    def close(self) -> None:
        """Log the last output of the child, which has ended, and stop reading."""
        _reader.remove(self._streams)

    def abandon(self) -> None:
        """Close the pipes instead of `begin`, because no child was started."""
        for fd in (*self.fds, *(stream.fd for stream in self._streams)):
            os.close(fd)


class _Stream:
    """The reading end of a pipe for a child's output. Not thread-safe: use it from one thread at a time."""

    def __init__(self, name: str, fd: int, level: int):
        os.set_blocking(fd, False)
        self.fd = fd
        self._name = name
        self._level = level
        self._begun = b""  # a line without its end

    def read(self) -> bool:
        """Read once, and log the complete lines. Return False if the pipe is empty or at its end."""
        try:
            data = os.read(self.fd, _READ)
        except BlockingIOError:
            return False
        # A progress bar ends what it overwrites with \r.
        *lines, self._begun = (self._begun + data).replace(b"\r", b"\n").split(b"\n")
        for line in lines:
            self._log(line)
        while len(self._begun) >= _LONGEST:
            self._log(self._begun[:_LONGEST])
            self._begun = self._begun[_LONGEST:]
        return bool(data)

    def close(self) -> None:
        """Log the output in the pipe and close it, even if processes of the child still write to it."""
        for _ in range(_CAPACITY // _READ + 1):
            if not self.read():
                break
        self._log(self._begun)
        os.close(self.fd)

    def _log(self, line: bytes) -> None:
        if line.strip() and logger.isEnabledFor(self._level):
            text = line.decode("utf-8", "replace")
            record = logger.makeRecord("core", self._level, self._name, 0, "%s", (text,), None)
            logger.handle(record)


class _Reader:
    """The thread that reads the output of all children. It runs while there is a child."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  # held while a stream is read
        self._streams: dict[int, _Stream] = {}
        self._wake: int  # a pipe; this and the next are set while there is a stream
        self._thread: threading.Thread

    def add(self, streams: Iterable[_Stream]) -> None:
        with self._lock:
            if not self._streams:
                self._begin()
            for stream in streams:
                self._streams[stream.fd] = stream
            os.write(self._wake, b".")

    def remove(self, streams: Iterable[_Stream]) -> None:
        """Log the remaining output of the streams and close them. After the last stream, end the thread."""
        with self._lock:
            for stream in streams:
                self._streams.pop(stream.fd, None)
                stream.close()
            if self._streams:
                return
            thread = self._thread
            os.close(self._wake)
        thread.join()

    def _begin(self) -> None:
        woken, self._wake = os.pipe()
        self._thread = threading.Thread(
            target=self._serve, args=(woken,), name="printed", daemon=True
        )
        self._thread.start()

    def _serve(self, woken: int) -> None:
        """Read the streams as they become readable, until the other end of the pipe is closed."""
        poll = select.poll()
        poll.register(woken, select.POLLIN)
        while True:
            for fd, events in poll.poll():
                if fd == woken:
                    if not os.read(woken, _READ):
                        os.close(woken)
                        return
                    with self._lock:
                        for each in self._streams:
                            poll.register(each, select.POLLIN)
                    continue
                with self._lock:
                    stream = self._streams.get(fd)
                    # Without a stream it is closed, and its number may be of another file by now.
                    if stream is None or (not stream.read() and events & select.POLLHUP):
                        poll.unregister(fd)


_reader = _Reader()
