"""TraceRing: the receiver of traces for the console. It keeps the last, the slowest and the failed ones.

Tracer ─► Trace ─► [TraceRing] ─► JSON when the page asks
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any

from core.errors import invalid
from core.options import Options
from core.telemetry.tracing import Trace, TraceExporter

_KEPT = 200
_MOST = 10_000
_SLOW = 32  # of the slowest
_SLOW_S = 600.0  # for which a slow trace is kept
_FAILED = 64
_CHILDREN = 200  # traces of one request that are shown
_LONGEST_ID = 1024  # characters of a request's id: it may be as long as a body
_LONGEST_ERROR = 4096  # characters; an error may contain the id

_opened: dict[int, TraceRing] = {}  # by identity of the options, until the server starts


class TraceRing(TraceExporter):
    """Keeps a bounded number of finished traces. Loop thread only.

    kept   how many of the last traces are kept
    """

    def __init__(self, kept: int = _KEPT):
        self.shown = {"kept": str(kept)}
        self._last: deque[tuple[int, Trace]] = deque(maxlen=kept)
        self._failed: deque[tuple[int, Trace]] = deque(maxlen=_FAILED)
        self._slow: list[tuple[int, int, Trace]] = []  # (duration in ns, time in ms, trace)

    @classmethod
    def opened(cls, options: Options, settings: Sequence[tuple[str, str]]) -> TraceRing:
        """Return a new ring for the server of these options; `of` finds it.

        Raises CoreError(INVALID) for an unknown setting, and for a number that is none.
        """
        found = _opened[id(options)] = cls(_number(settings))
        return found

    @staticmethod
    def of(options: Options) -> TraceRing | None:
        """Return the ring that `opened` has made for these options, once; None if there is none."""
        return _opened.pop(id(options), None)

    def export(self, trace: Trace) -> None:
        """Keep a finished trace with its children. Cut the texts of clients in it."""
        for each in (trace, *trace.children):
            each.request_id = each.request_id[:_LONGEST_ID]
            each.error = each.error[:_LONGEST_ERROR]
        now_ms = time.time_ns() // 1_000_000
        self._last.append((now_ms, trace))
        if _error(trace):
            self._failed.append((now_ms, trace))
            return
        start_ns, end_ns = _bounds(trace)
        self._slow.append((end_ns - start_ns, now_ms, trace))
        if len(self._slow) > 2 * _SLOW:
            self._forget(now_ms)

    async def close(self, timeout_s: float) -> None:
        """Forget all traces."""
        self._last.clear()
        self._failed.clear()
        self._slow.clear()

    def listed(self, model: str = "") -> list[dict[str, Any]]:
        """Return the traces in which a model has a part, or all, the latest first, as values for JSON."""
        self._forget(time.time_ns() // 1_000_000)
        slowest = {trace.id for _, _, trace in self._slow}
        found = {trace.id: (at_ms, trace) for at_ms, trace in (*self._last, *self._failed)}
        found |= {trace.id: (at_ms, trace) for _, at_ms, trace in self._slow}
        return [
            {**shown(trace), "at_ms": at_ms, "slow": trace.id in slowest}
            for at_ms, trace in sorted(found.values(), key=lambda each: -each[1].id)
            if not model or any(each.model_name == model for each in (trace, *trace.children))
        ]

    def _forget(self, now_ms: int) -> None:
        young = (each for each in self._slow if now_ms - each[1] < _SLOW_S * 1000)
        self._slow = sorted(young, key=lambda each: -each[0])[:_SLOW]


def shown(trace: Trace) -> dict[str, Any]:
    """Return a trace as values for JSON: its spans begin at microseconds from its first event."""
    start_ns, end_ns = _bounds(trace)
    spans = [_span(each, start_ns) for each in (trace, *trace.children[:_CHILDREN])]
    return {
        "id": trace.id,
        "model": trace.model_name,
        "version": trace.model_version,
        "request": trace.request_id,
        "error": _error(trace),
        "us": (end_ns - start_ns) // 1000,
        "spans": spans,
        "left_out": max(0, len(trace.children) - _CHILDREN),
    }


def _span(trace: Trace, start_ns: int) -> dict[str, Any]:
    attributes: dict[str, Any] = vars(trace).get("attributes", {})
    return {
        "id": trace.id,
        "parent": trace.parent_id,
        "model": trace.model_name,
        "version": trace.model_version,
        "instance": attributes.get("core.instance", ""),
        "error": trace.error,
        "stamps": [[name, (ns - start_ns) // 1000] for ns, name in trace.stamps()],
    }


def _bounds(trace: Trace) -> tuple[int, int]:
    times = [ns for each in (trace, *trace.children) for ns, _ in each.stamps()]
    return (min(times), max(times)) if times else (trace.began_ns, trace.began_ns)


def _error(trace: Trace) -> str:
    return next((each.error for each in (trace, *trace.children) if each.error), "")


def _number(settings: Iterable[tuple[str, str]]) -> int:
    kept = _KEPT
    for name, text in settings:
        if name != "kept":
            raise invalid(f"--trace-config=console,{name}: unknown setting, expected 'kept'")
        if not text.isascii() or not text.isdecimal() or not 0 < int(text) <= _MOST:
            raise invalid(
                f"--trace-config=console,kept={text}: expected a number from 1 to {_MOST}"
            )
        kept = int(text)
    return kept
