"""Recorder: captures the calls of one server, from its start to its stop.

CallObservers ─► [Recorder] ─► Captured, one for each selected call ─► CaptureWriter
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from typing import Any

import orjson

from core.errors import invalid
from core_capture.options import CaptureOptions
from core_capture.recording.drift_meter import DriftMeter
from core_capture.recording.files import CaptureFiles
from core_capture.recording.headers import HeaderRedaction
from core_capture.recording.observation import GOOD, Captured
from core_capture.recording.redaction import TensorRedaction
from core_capture.recording.selection import Selection
from core_capture.recording.writer import CaptureWriter
from core_capture.records.record import Record, RecordedMessage
from frontends.grpc.access_log import names_in
from frontends.shared.call_observers import CallObservers, ObservedCall

logger = logging.getLogger("core")


class Recorder:
    """Captures calls while it is running (CallObserver). Event loop only.

    worker    number of this process among the workers, from 0 on
    workers   number of the workers, which share the bytes of the folder
    secret    header fields whose values are not recorded, beside those of HeaderRedaction
    """

    def __init__(
        self,
        observers: CallObservers,
        options: CaptureOptions,
        *,
        worker: int = 0,
        workers: int = 1,
        secret: tuple[str, ...] = (),
    ):
        self._observers = observers
        self._options = options
        self._worker = worker
        self._workers = workers
        self.drift: DriftMeter | None = None
        if options.capture_drift:
            self.drift = DriftMeter(options.capture_drift_class, options.capture_drift_secs)
        self._categories = {"inference", *options.capture_category}
        self._headers = HeaderRedaction((*options.capture_redact_header, *secret))
        self._tensors = TensorRedaction(options.capture_redact_tensor)
        self.selection = Selection.of(options)
        self._writer: CaptureWriter | None = None
        self._folder = ""
        self._since_ns = 0
        self._ended_counts: list[Counter[str]] = []  # of earlier captures

    @property
    def running(self) -> bool:
        """Return whether requests are written."""
        return self._writer is not None and bool(self._folder)

    def start(self, folder: str, selection: Selection) -> None:
        """Begin to capture.

        folder   "" to write nothing: the metrics of drift alone see the requests
        Raises CoreError: INVALID if a capture runs, UNAVAILABLE for a folder that cannot be written to.
        """
        if self.running:
            raise invalid(f"a capture into '{self._folder}' is running; stop it first")
        options = self._options
        files = None
        if folder:
            files = CaptureFiles(
                folder,
                self._worker,
                options.capture_max_bytes // self._workers,
                options.capture_file_bytes,
                self._workers,
            )
        self.stop()  # not before: without the files, the metrics of drift go on
        self.selection = selection
        self._folder = folder
        self._since_ns = time.time_ns()
        self._writer = CaptureWriter(files, self._record_of, options.capture_queue_bytes)
        self._observers.add(self)

    def stop(self) -> CaptureWriter | None:
        """End the capture; calls that are still running are not recorded.

        Return the writer, which still writes the last records: `close` waits for them. None if none runs.
        """
        self._observers.remove(self)
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.end()
            self._ended_counts.append(writer.counts)
        return writer

    def status(self) -> dict[str, Any]:
        """Return whether a capture runs, and if so its folder, since when, and what it records."""
        found: dict[str, Any] = {"running": self.running, "counts": dict(self.counts())}
        if self.running:
            each = self.selection
            found |= {
                "folder": self._folder,
                "since_ns": self._since_ns,
                "rate": each.rate,
                "models": list(each.models),
                "callers": list(each.callers),
                "latency_ms": each.latency_ms,
                "errors": each.errors,
                "answers": each.answers,
            }
        return found

    def counts(self) -> Counter[str]:
        """Return what has been written and lost since the start of the server (CaptureWriter.counts)."""
        current = [] if self._writer is None else [self._writer.counts]
        return sum((*self._ended_counts, *current), Counter())

    def begin(self, call: ObservedCall) -> Captured | None:
        if call.protocol not in GOOD or call.category not in self._categories:
            return None
        if call.model and not self.selection.takes_model(call.model):
            return None
        if not self.selection.begins(call.caller):
            return None
        return Captured(
            call, self.selection.answers, self._options.capture_request_bytes, self._ended
        )

    def _ended(self, call: Captured) -> None:
        if self._writer is not None and self.selection.ends(call.duration_ns, call.failed):
            self._writer.put(call)

    def _record_of(self, call: Captured) -> Record | None:
        """Return the record of a call; None for one of a model that is not selected. The writer's thread."""
        seen = call.call
        record = Record(
            call.time_ns,
            seen.protocol,
            self._headers.request(seen.head),
            seen.model,
            seen.version,
            seen.client,
            seen.caller,
            self._worker,
            call.status,
            call.duration_ns,
            self._headers.answer(call.answer_head),
            call.answers,
            call.cut,
            received=_messages(call.received),
            sent=_messages(call.sent),
        )
        if not record.model:
            record.model, record.version = _named(record)
            if not self.selection.takes_model(record.model):
                return None
        self._tensors.redact(record)
        if self.drift is not None:
            try:
                self.drift.add(record)
            except Exception:
                logger.exception("a captured request has no part in the metrics of drift")
        return record


def _messages(messages: list[tuple[int, list[Any]]]) -> list[RecordedMessage]:
    return [RecordedMessage(at_ns, b"".join(parts)) for at_ns, parts in messages]


def _named(record: Record) -> tuple[str, str]:
    """Return model and version in the first message: of a stream of gRPC, or the `model` of JSON."""
    if not record.received:
        return "", ""
    first = record.received[0].data
    if record.protocol == "grpc":
        return names_in(record.path, first)[:2]
    try:
        document = orjson.loads(first)
    except ValueError:
        return "", ""
    model = document.get("model") if isinstance(document, dict) else None
    return (model, "") if isinstance(model, str) else ("", "")
