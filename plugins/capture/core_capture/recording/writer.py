"""CaptureWriter: a thread that turns captured calls into records in files.

event loop ─► put ─► queue of bounded size ─► [thread] ─► record without secrets ─► CaptureFiles
"""

from __future__ import annotations

import logging
import threading
from collections import Counter, deque
from collections.abc import Callable
from typing import Any

from core.telemetry.losses import Losses
from core_capture.recording.files import CaptureFiles
from core_capture.recording.observation import Captured
from core_capture.records.record import Damaged, Record, encode

logger = logging.getLogger("core")

_END_S = 5.0  # for the calls that wait when the capture ends


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
            while (taken := self._take()) is not None:
                self._write(taken)
                del taken
        if self._files is not None:
            self._files.close()
        self._losses.flush()

    def _take(self) -> Captured | None:
        with self._lock:
            if not self._waiting:
                return None
            call, size = self._waiting.popleft()
            self._waiting_bytes -= size
            return call

    def _write(self, call: Captured) -> None:
        try:
            record = self._record_of(call)
            if record is None or self._files is None:
                return
            pieces: list[Any] = encode(record)
            self._files.write(pieces)
        except OSError as error:
            folder = "" if self._files is None else self._files.folder
            self._lose(f"the capture '{folder}' cannot be written: {error.strerror}")
        except Damaged as error:
            self._lose(str(error))
        except Exception:
            logger.exception("a captured request is lost")
            self.counts["unwritten"] += 1
        else:
            self.counts["written"] += 1
            self.counts["bytes"] += sum(map(len, pieces))

    def _lose(self, reason: str) -> None:
        self.counts["unwritten"] += 1
        self._losses.add(reason, 1)
