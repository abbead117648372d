"""Plan: the records of a replay, in the order in which they are sent."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from core_capture.records.reader import CaptureReader, Loss, Place
from core_capture.records.record import Record


class Plan:
    """What is sent. Messages stay in the files until they are.

    models     patterns of names; none: all models
    protocol   "http" or "grpc": only its records; "": all
    limit      most records, the first ones; 0 for all
    Raises CoreError(INVALID) for a path without a capture.
    """

    def __init__(
        self, path: str | Path, models: Sequence[str] = (), protocol: str = "", limit: int = 0
    ):
        reader = CaptureReader(path)
        found = reader.places()
        self.losses: Sequence[Loss] = reader.losses
        self.items: Sequence[tuple[Place, Record]] = [
            (place, record)
            for place, record in found
            if protocol in ("", record.protocol)
            and (not models or any(fnmatchcase(record.model, each) for each in models))
        ][: limit or None]

    @property
    def duration_ns(self) -> int:
        """Return the time from the first beginning to the last end."""
        if not self.items:
            return 0
        return max(each.end_ns for _, each in self.items) - self.items[0][1].time_ns
