"""CaptureReader: the records of a capture, which is a folder with files, or one file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from core.errors import invalid
from core_capture.records.record import HEAD, MARKER, Damaged, Record, check, decode

SUFFIX = ".corecap"
FIRST_LINE = b"core capture 1\n"
_AT_ONCE = 1 << 20


@dataclass(frozen=True)
class Place:
    """Where a record is: its file, and the position of its marker."""

    path: Path
    at: int


@dataclass(frozen=True)
class Loss:
    """Bytes of a file that are no record: after a crash the last record, else damage.

    size     number of bytes
    reason   of the first of them
    """

    place: Place
    size: int
    reason: str

    def __str__(self) -> str:
        return f"{self.place.path}: {self.size} bytes at {self.place.at} are skipped: {self.reason}"


class CaptureReader:
    """Reads a capture. Files may still be written to: a record that is incomplete is a loss.

    from_ns, to_ns   the window of the records: those that began from the one time on, before the other
    losses           what `records` and `places` have skipped
    """

    def __init__(self, path: str | Path, from_ns: int = 0, to_ns: int = 2**63 - 1):
        """Raises CoreError(INVALID) for a path without files of a capture."""
        self.path = Path(path)
        self._window = range(from_ns, to_ns)
        self.losses: list[Loss] = []
        if self.path.is_dir():
            self.files = sorted(self.path.glob(f"*{SUFFIX}"))
            if not self.files:
                raise invalid(f"'{path}' has no files of a capture, whose names end in {SUFFIX}")
        elif self.path.is_file():
            self.files = [self.path]
        else:
            raise invalid(f"there is no capture at '{path}': give a folder or a file of --capture")

    def records(self) -> Iterator[Record]:
        """Generate all records, in each file by the time of their ends. Raises CoreError for other files."""
        for place, payload in self._payloads():
            if (record := self._decoded(place, payload)) is not None:
                yield record

    def places(self) -> list[tuple[Place, Record]]:
        """Return place and record without messages of each call, in the order of their beginnings."""
        found = []
        for place, payload in self._payloads():
            if (record := self._decoded(place, payload, with_messages=False)) is not None:
                found.append((place, record))
        found.sort(key=lambda each: each[1].time_ns)
        return found

    def tail(self, most_bytes: int) -> tuple[list[tuple[Place, Record]], int]:
        """Return place and record without messages of the calls in the last `most_bytes`, the latest first.

        Return the number of bytes before them, too. Files that the server removes meanwhile are left out.
        """
        found, left_out = [], 0
        sizes = {}
        for path in self.files:
            with suppress(FileNotFoundError):
                sizes[path] = path.stat()
        for path in sorted(sizes, key=lambda each: sizes[each].st_mtime_ns, reverse=True):
            size, start = sizes[path].st_size, len(FIRST_LINE)
            with suppress(FileNotFoundError), path.open("rb") as file:
                if file.read(start) != FIRST_LINE:
                    continue
                if size - start > most_bytes:
                    start = _first_record(file, start, size - most_bytes, size)
                for place, payload in self._of_file(path, file, start):
                    if (record := self._decoded(place, payload, with_messages=False)) is not None:
                        found.append((place, record))
            most_bytes = max(0, most_bytes - (size - start))
            left_out += start - len(FIRST_LINE)
        found.sort(key=lambda each: -each[1].time_ns)
        return found, left_out

    @staticmethod
    def read(place: Place) -> Record:
        """Return the record at a place. Raises Damaged if it is not there any more."""
        with place.path.open("rb") as file:
            file.seek(place.at)
            head = file.read(HEAD.size)
            if len(head) < HEAD.size or head[:4] != MARKER:
                raise Damaged("there is no record at this place")
            payload = file.read(HEAD.unpack(head)[1])
        check(head, payload)
        return decode(payload)

    def _decoded(self, place: Place, payload: bytes, **more: bool) -> Record | None:
        try:
            record = decode(payload, **more)
            return record if record.time_ns in self._window else None
        except Damaged as error:
            self.losses.append(Loss(place, HEAD.size + len(payload), str(error)))
            return None

    def _payloads(self) -> Iterator[tuple[Place, bytes]]:
        for path in self.files:
            with path.open("rb") as file:
                start = file.read(len(FIRST_LINE))
                if not start:
                    continue  # a server has just begun it
                if start != FIRST_LINE:
                    raise invalid(
                        f"'{path}' is no file of a capture: it does not begin with {FIRST_LINE!r}"
                    )
                yield from self._of_file(path, file, len(FIRST_LINE))

    def _of_file(self, path: Path, file: BinaryIO, at: int) -> Iterator[tuple[Place, bytes]]:
        size = path.stat().st_size
        while at < size:
            file.seek(at)
            place = Place(path, at)
            try:
                head = file.read(HEAD.size)
                if len(head) < HEAD.size:
                    raise Damaged("a record is incomplete")
                if head[:4] != MARKER:
                    raise Damaged("there is no marker of a record")
                length = HEAD.unpack(head)[1]
                if at + HEAD.size + length > size:
                    raise Damaged("a record is incomplete")
                payload = file.read(length)
                check(head, payload)
            except Damaged as error:
                following = _next_marker(file, at + 1, size)
                self.losses.append(Loss(place, following - at, str(error)))
                at = following
                continue
            yield place, payload
            at += HEAD.size + length


def _first_record(file: BinaryIO, at: int, least: int, size: int) -> int:
    """Return the position of the first record from `least` on, or `size`.

    Follows the sizes in the heads of the records from `at` on: the messages of a client may hold a marker.
    """
    while at < least:
        file.seek(at)
        head = file.read(HEAD.size)
        if len(head) < HEAD.size:
            return size
        if head[:4] == MARKER:
            at += HEAD.size + HEAD.unpack(head)[1]
        else:  # damage
            at = _next_marker(file, at + 1, size)
    return min(at, size)


def _next_marker(file: BinaryIO, at: int, size: int) -> int:
    """Return the position of the first marker from `at` on, or `size`."""
    while at < size:
        file.seek(at)
        found = file.read(_AT_ONCE)
        where = found.find(MARKER)
        if where >= 0:
            return at + where
        at += max(1, len(found) - len(MARKER) + 1)
    return size
