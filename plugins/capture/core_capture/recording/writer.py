"""CaptureWriter: a thread that turns captured calls into records in files.

event loop ─► put ─► queue of bounded size ─► [thread] ─► record without secrets ─► CaptureFiles
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter, deque
from collections.abc import Callable

from core.telemetry.losses import Losses
from core_capture.recording.files import CaptureFiles
from core_capture.recording.observation import Captured
from core_capture.records.record import Damaged, Record, encode

logger = logging.getLogger("core")

_END_S = 5.0  # for the calls that wait when the capture ends
_PAUSE_S = 0.02  # between the end of a call and its record in a file
_TURN_S = 0.0005  # longest work without a chance for the event loop
_AT_ONCE = 1 << 20


class CaptureWriter:
    """Writes captured calls in the background. `put` and `end` on the event loop.

    counts      written, bytes: of records in files; full, unwritten: calls that were lost because the queue
                was full, or the disk
    files       gets the records; None: they are not written
    record_of   makes the record of a call, on the writer's thread; None for a call that is not selected
    most_bytes  of the calls that wait
    """

    def __init__(
        self,
        files: CaptureFiles | None,
        record_of: Callable[[Captured], Record | None],
        most_bytes: int,
    ):
        self.counts: Counter[str] = Counter()
        self._files = files
        self._record_of = record_of
        self._most_bytes = most_bytes
        self._waiting: deque[tuple[Captured, int]] = deque()
        self._waiting_bytes = 0
        self._lock = threading.Lock()  # of the two above
        self._stir = threading.Event()
        self._ending = False
        self._losses = Losses(logger.error, "captured requests are")
        self._thread = threading.Thread(target=self._serve, name="core-capture", daemon=True)
        self._thread.start()

    def put(self, call: Captured) -> None:
        """Have a call written that has ended; count it as lost if too many bytes wait."""
        size = call.size
        with self._lock:
            if self._waiting and self._waiting_bytes + size > self._most_bytes:
                self.counts["full"] += 1
                return
            self._waiting.append((call, size))
            self._waiting_bytes += size
        self._stir.set()

    def end(self) -> None:
        """Let the thread write the calls that wait, and end."""
        self._ending = True
        self._stir.set()

    def close(self) -> None:
        """Wait until the last calls are written: at most 5 s."""
        self.end()
        self._thread.join(_END_S)

    # the writer's thread ------------------------------------------------------------------

    def _serve(self) -> None:
        while not (self._ending and not self._waiting):
            self._stir.wait()
            self._stir.clear()
            if not self._ending:
                time.sleep(_PAUSE_S)  # records share wake-ups and writes
            while taken := self._take():
                self._write(taken)
                taken.clear()
        if self._files is not None:
            self._files.close()
        self._losses.flush()

    def _take(self) -> list[Captured]:
        """Return calls of about _AT_ONCE bytes, the oldest first; none if none waits."""
        taken, total = [], 0
        with self._lock:
            while self._waiting and total < _AT_ONCE:
                call, size = self._waiting.popleft()
                self._waiting_bytes -= size
                total += size
                taken.append(call)
        return taken

    def _write(self, calls: list[Captured]) -> None:
        """Write the records of calls: as many with one write as there is room for in a file."""
        pieces: list[bytes] = []
        count = size = 0
        yielded_s = time.monotonic()
        for call in calls:
            encoded = self._encoded(call)
            added = sum(map(len, encoded))
            if pieces and self._files is not None and not self._files.has_room(size + added):
                self._put(pieces, count, size)
                pieces, count, size = [], 0, 0
            if encoded:
                pieces += encoded
                count, size = count + 1, size + added
            if time.monotonic() - yielded_s > _TURN_S:
                time.sleep(0)  # the event loop may have the interpreter
                yielded_s = time.monotonic()
        if pieces:
            self._put(pieces, count, size)

    def _encoded(self, call: Captured) -> list[bytes]:
        """Return the record of a call as bytes; none if it is not to be written, or is lost."""
        try:
            record = self._record_of(call)
            return [] if record is None or self._files is None else encode(record)
        except Damaged as error:
            self._lose(str(error), 1)
        except Exception:
            logger.exception("a captured request is lost")
            self.counts["unwritten"] += 1
        return []

    def _put(self, pieces: list[bytes], count: int, size: int) -> None:
        assert self._files is not None  # else there are no pieces
        try:
            self._files.write(pieces)
        except OSError as error:
            where = self._files.folder
            self._lose(f"the capture '{where}' cannot be written: {error.strerror}", count)
        else:
            self.counts["written"] += count
            self.counts["bytes"] += size

    def _lose(self, reason: str, count: int) -> None:
        self.counts["unwritten"] += count
        self._losses.add(reason, count)
