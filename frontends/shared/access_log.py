"""The access log: a line with a JSON object for each request, or each nth success (--access-log-rate).

frontend ─► AccessLogEntry ─► [AccessLog] ─► a thread ─► file.  The loop only fills a queue: if the file is
too slow, lines are dropped and counted, and no request waits.
"""

from __future__ import annotations

import json
import logging
import os
import stat
import sys
import threading
import time
from collections import deque
from dataclasses import dataclass, field
from typing import Any

from core.errors import invalid, unavailable
from core.telemetry.losses import Losses
from core.telemetry.tracing.context import parsed
from frontends.shared.options import SharedOptions

logger = logging.getLogger("core")

MOST_WAITING = 65_536  # capacity of the queue in lines; more lines are dropped
LONGEST_TEXT = 1024  # characters of a name, a path or an id
GONE = 499  # HTTP status of a request whose client disconnects before the response

_PAUSE_S = 0.1  # pause between two writes, to write many lines together
_AT_ONCE = 64  # lines that are encoded before they are written
_END_S = 5.0  # for the last lines; a pipe without a reader must not block the end of the server
_ATOMIC = 4096  # bytes that a pipe takes atomically, with several writers


@dataclass(slots=True, eq=False)
class AccessLogEntry:
    """The fields of one line. The frontend fills it on the loop; then the writer's thread owns it."""

    protocol: str  # "http" or "grpc"
    client: str  # address and port, "" for one that has none
    path: str  # without the query; for gRPC of the method
    method: str = ""  # of HTTP, "" for gRPC
    model: str = ""  # as the client wrote it, "" for none
    version: str = ""  # as the client wrote it, "" for none
    id: str = ""  # the client's name for the request
    caller: str = ""  # name of the authenticated caller, "" for an unknown client
    trace: str = ""  # trace id in 32 digits, "" for none
    began_ns: int = field(default_factory=time.monotonic_ns)  # when the frontend creates the entry
    ended_ns: int = 0
    bytes_in: int = 0  # of the body or message, as received
    bytes_out: int = 0  # of the body or of all messages of the response
    status: int = 0  # of HTTP, or the code of gRPC
    prompt_tokens: int = -1  # of all prompts; -1 if unknown
    tokens: int = -1  # generated; -1 if unknown

    def belong(self, traceparent: str) -> None:
        """Set the trace id from the value of a `traceparent` header. Ignore an empty or invalid value."""
        if traceparent and (span := parsed(traceparent)) is not None:
            self.trace = f"{span.trace_id:032x}"

    def come_from(self, caller: Any) -> None:
        """Set the caller's name, if the caller is known.

        caller   an access.Caller, or None if the request was not identified
        """
        if caller is not None and caller.known:
            self.caller = caller.name

    def cut(self) -> None:
        """Cut the texts that a client may make as long as a body, since many entries may wait."""
        if len(self.id) + len(self.path) + len(self.model) + len(self.version) > LONGEST_TEXT:
            self.id = self.id[:LONGEST_TEXT]
            self.path = self.path[:LONGEST_TEXT]
            self.model = self.model[:LONGEST_TEXT]
            self.version = self.version[:LONGEST_TEXT]

    def line(self, epoch_ns: int) -> dict[str, Any]:
        """Return the JSON object of the line.

        Fields that are empty text, except `client`, and unknown counts of tokens are left out. Texts of
        clients are cut to LONGEST_TEXT.
        epoch_ns   time.time_ns() - time.monotonic_ns(), to convert monotonic times
        """
        found: dict[str, Any] = {
            "time": iso8601(self.began_ns + epoch_ns),
            "client": self.client,
            "protocol": self.protocol,
        }
        for name in ("method", "path", "model", "version", "id", "caller"):
            if text := getattr(self, name):
                found[name] = text[:LONGEST_TEXT]
        if self.trace:
            found["trace_id"] = self.trace
        found["status"] = self.status
        found["duration_us"] = (self.ended_ns - self.began_ns) // 1000
        found["bytes_in"] = self.bytes_in
        found["bytes_out"] = self.bytes_out
        if self.prompt_tokens >= 0:
            found["prompt_tokens"] = self.prompt_tokens
        if self.tokens >= 0:
            found["tokens"] = self.tokens
        return found


class AccessLog:
    """Writes entries on a thread of its own. Loop thread only, but for `close`, which blocks.

    `_serve` and the methods after it run on that thread; `__init__` also calls `_opened`.
    """

    def __init__(self, path: str, rate: int = 1, most: int = MOST_WAITING):
        """Raises CoreError(UNAVAILABLE) for a file that cannot be opened."""
        self.dropped = 0  # entries that did not fit into the queue, since the start
        self._path = path  # of the file; "-" for standard output
        self._rate = rate  # one of `rate` successful requests is logged; failed ones always
        self._most = most  # capacity of the queue in entries
        self._passed = 0  # successful requests since the last one in the log
        self._waiting: deque[AccessLogEntry] = deque()
        # Written by the loop and by the writer, which sets it before it looks at the queue.
        self._asleep = True
        self._stir = threading.Event()
        self._end = False
        self._reopen = False
        # The writer's thread only:
        self._lost = 0  # lines that could not be written
        self._reported_lost = 0  # lost and dropped lines that a line of the log reports
        self._losses = Losses(logger.error, "lines are")
        self._is_torn = False  # the file ends in the middle of a line
        self._rest = b""  # bytes of the current write that are not written yet
        try:
            self._file = self._opened()
        except OSError as error:
            raise unavailable(f"--access-log={path} cannot be opened: {error.strerror}") from None
        self._thread = threading.Thread(target=self._serve, name="core-access-log", daemon=True)
        self._thread.start()

    @classmethod
    def of(cls, options: SharedOptions) -> AccessLog | None:
        """Return the access log that --access-log names, or None if the flag is not set.

        Raises CoreError(UNAVAILABLE) for a file that cannot be opened, CoreError(INVALID) for a folder.
        """
        if not options.access_log:
            return None
        if os.path.isdir(options.access_log):
            raise invalid(
                f"--access-log={options.access_log} is a folder; name a file, or - for stdout"
            )
        return cls(options.access_log, options.access_log_rate)

    def write(self, entry: AccessLogEntry, status: int, bytes_out: int) -> None:
        """Complete the entry of a request and queue it for the writer.

        Of successful requests only one of `rate` is queued. With a full queue the entry is dropped, and
        counted.
        """
        good = status < 400 if entry.protocol == "http" else status == 0
        if good and self._rate > 1:
            self._passed += 1
            if self._passed < self._rate:
                return
            self._passed = 0
        if len(self._waiting) >= self._most:
            self.dropped += 1
            return
        entry.cut()
        entry.ended_ns = time.monotonic_ns()
        entry.status = status
        entry.bytes_out = bytes_out
        self._waiting.append(entry)
        if self._asleep:
            self._asleep = False
            self._stir.set()

    def reopen(self) -> None:
        """Open the path again soon, before any later line, for log rotation.

        The writer also does so by itself when the file is no longer at its path.
        """
        self._reopen = True
        self._stir.set()

    def close(self) -> None:
        """Write the queued entries, and end the thread. Blocks for at most 5 s. May be called twice."""
        self._end = True
        self._stir.set()
        self._thread.join(_END_S)

    # the writer's thread --------------------------------------------------------------

    def _serve(self) -> None:
        while not self._end:
            self._asleep = True
            if not self._waiting:
                self._stir.wait()
            self._asleep = False
            self._stir.clear()
            self._write_waiting()
            if not self._end:
                self._stir.wait(_PAUSE_S)
        self._write_waiting()
        if self._waiting:
            self._losses.add("the server ends", len(self._waiting))
        self._losses.flush()
        if self._file > 2:
            os.close(self._file)

    def _write_waiting(self) -> None:
        lines: list[bytes] = []  # encoded, but not written yet
        try:
            # Count before checking the path: entries that come after a move go to the new file.
            while (count := min(_AT_ONCE, len(self._waiting))) or self._reopen:
                if self._reopen or self._moved():
                    self._reopen = False
                    self._open_again()
                self._write_missing()
                lines = self._lines(count)
                self._put(lines)
                self._losses.end()
            if self._end:
                self._write_missing()  # no line follows that would report them
        except OSError as error:
            reason = f"the access log '{self._path}' cannot be written: {error.strerror or error}"
            self._lost += len(lines)
            self._losses.add(reason, len(lines))

    def _write_missing(self) -> None:
        """Write a line with the number of lines lost since the last such line; none if no line is lost.

        Lost are lines dropped at a full queue, and lines that could not be written. Raises OSError.
        """
        lost = self.dropped + self._lost
        if lost > self._reported_lost:
            text = {"time": iso8601(time.time_ns()), "dropped": lost - self._reported_lost}
            self._write_all(_encoded(text))
            self._reported_lost = lost

    def _lines(self, count: int) -> list[bytes]:
        epoch_ns = time.time_ns() - time.monotonic_ns()
        return [_encoded(self._waiting.popleft().line(epoch_ns)) for _ in range(count)]

    def _put(self, lines: list[bytes]) -> None:
        """Write lines, and remove each written one from the list. Raises OSError.

        Lines are not split between system calls, because other processes may append to the same file or pipe.
        """
        while lines:
            piece, count = lines[0], 1
            while count < len(lines) and len(piece) + len(lines[count]) <= _ATOMIC:
                piece += lines[count]
                count += 1
            try:
                self._write_all(piece)
            finally:
                del lines[: count - self._rest.count(b"\n")]

    def _write_all(self, piece: bytes) -> None:
        if self._is_torn:
            piece = b"\n" + piece
        self._rest = piece
        while self._rest:
            self._rest = self._rest[os.write(self._file, self._rest) :]
            self._is_torn = bool(self._rest)

    def _opened(self) -> int:
        if self._path == "-":
            return sys.stdout.fileno()
        # Only the owner and the group may read ids and addresses.
        return os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o640)

    def _moved(self) -> bool:
        """Return whether the path names another file now, or no file while the log is a regular file.

        Return False for standard output.
        """
        if self._path == "-":
            return False
        mine = os.fstat(self._file)
        try:
            there = os.stat(self._path)
        except FileNotFoundError:
            return stat.S_ISREG(mine.st_mode)
        return (mine.st_dev, mine.st_ino) != (there.st_dev, there.st_ino)

    def _open_again(self) -> None:
        if self._path == "-":
            return
        before, self._file = self._file, self._opened()
        os.close(before)
        self._is_torn = False


def iso8601(time_ns: int) -> str:
    """Return nanoseconds since the epoch as `2026-11-21T09:15:02.000123Z`."""
    seconds, rest = divmod(time_ns, 10**9)
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(seconds))}.{rest // 1000:06d}Z"


def _encoded(line: dict[str, Any]) -> bytes:
    """Return a line as JSON with a newline; characters other than printable ASCII are escaped."""
    return json.dumps(line, separators=(",", ":")).replace("\x7f", "\\u007f").encode() + b"\n"
