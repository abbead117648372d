"""Copies and kernels in a timeline of torch's profiler."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

Interval = tuple[float, float]


def recorded(work: Callable[[], Any]) -> list[dict[str, Any]]:
    """Return the events of this process's GPU work during a call."""
    import torch
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CUDA]) as profiler:
        work()
        torch.cuda.synchronize()
    with tempfile.TemporaryDirectory(prefix="timeline-") as folder:
        trace = Path(folder) / "trace.json"
        profiler.export_chrome_trace(str(trace))
        found: list[dict[str, Any]] = json.loads(trace.read_text())["traceEvents"]
    return found


def copies(events: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """Return how often memory was copied to the GPU, on it, and to the host."""
    names = [str(each.get("name")) for each in events if each.get("cat") == "gpu_memcpy"]
    return {way: sum(way in name for name in names) for way in ("HtoD", "DtoD", "DtoH")}


def overlap(events: Sequence[Mapping[str, Any]], direction: str) -> float:
    """Return the fraction of the copy time in which a kernel ran; 0 without copies.

    direction   "HtoD" or "DtoH"
    """
    kernels = _merged(_interval(each) for each in events if each.get("cat") == "kernel")
    moved = [
        _interval(each)
        for each in events
        if each.get("cat") == "gpu_memcpy" and direction in str(each.get("name"))
    ]
    beside = sum(
        max(0.0, min(end, to) - max(start, since)) for start, end in moved for since, to in kernels
    )
    whole = sum(end - start for start, end in moved)
    return beside / whole if whole else 0.0


def _interval(event: Mapping[str, Any]) -> Interval:
    start = float(event["ts"])
    return start, start + float(event["dur"])


def _merged(intervals: Iterable[Interval]) -> list[Interval]:
    """Return the intervals in order, with overlapping ones merged."""
    found: list[Interval] = []
    for start, end in sorted(intervals):
        if found and start <= found[-1][1]:
            found[-1] = found[-1][0], max(end, found[-1][1])
        else:
            found.append((start, end))
    return found
