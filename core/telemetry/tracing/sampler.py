"""Sampler: choose the requests to trace, and the time to write their traces."""

from __future__ import annotations

from core.telemetry.tracing.settings import TraceSettings
from core.telemetry.tracing.trace import Trace
from core.telemetry.tracing.writer import TraceFiles


class Sampler:
    """Chooses requests by the settings of the server or of one model. Call from the loop thread only.

    takes_context  whether each request with the context of its client is traced, unless tracing is off
    remaining      traces that may still begin, -1 for no limit; a request with the context of its client
                   is traced beyond this limit

    Without `log_frequency` and `count` a finished trace is written at once. Else traces wait here until
    there are `log_frequency` of them, or until `count` is reached and the last of them has finished.
    """

    def __init__(
        self,
        settings: TraceSettings,
        files: TraceFiles,
        remaining: int | None = None,
        *,
        takes_context: bool = False,
    ):
        self.settings = settings
        self._takes_context = takes_context
        self.remaining = settings.count if remaining is None else remaining
        self._files = files
        self._seen = 0
        self._open = 0  # traces that have begun and not finished
        self._waiting: list[Trace] = []
        self._retired = False

    @property
    def active(self) -> bool:
        """Return whether a request may still be traced."""
        settings = self.settings
        return settings.may_trace and (
            self._takes_context or (settings.rate != 0 and self.remaining != 0)
        )

    def take(self, forced: bool = False) -> bool:
        """Return whether to trace this request: the last of each `rate` ones. If so, count its trace as open.

        forced   the request has the context of its client: it is always traced unless tracing is off
        """
        if not self.settings.may_trace:
            return False
        if not (self._is_next(forced) or forced):
            return False
        self._open += 1
        return True

    def _is_next(self, forced: bool) -> bool:
        rate = self.settings.rate
        if not rate or not (self.remaining or forced):
            return False
        self._seen += 1
        if self._seen < rate:
            return False
        self._seen = 0
        if self.remaining > 0:
            self.remaining -= 1
        return True

    def left(self, trace: Trace) -> None:
        """Record that a trace is complete; write it and the waiting traces if it is time (see the class)."""
        self._open -= 1
        self._waiting.append(trace)
        settings = self.settings
        if not settings.log_frequency and settings.count < 0:
            self._write(numbered=False)
        elif len(self._waiting) == settings.log_frequency or (
            not self.remaining and not self._open
        ):
            self._write(numbered=True)
        elif self._retired and not self._open:
            self._write(numbered=bool(settings.log_frequency))

    def retire(self) -> None:
        """Write waiting traces, now or once no trace is open. The caller must not call `take` any more."""
        self._retired = True
        if not self._open:
            self._write(numbered=bool(self.settings.log_frequency))

    def _write(self, *, numbered: bool) -> None:
        if self._waiting:
            traces, self._waiting = self._waiting, []
            write = self._files.save_numbered if numbered else self._files.append
            write(self.settings.file, traces)
