"""OutputFolder: the results of a run in the order of its items, and where it goes on.

results.jsonl, errors.jsonl   a line for each item that is done; together they are the journal
run.json                      what the folder belongs to
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

import orjson

from core.errors import invalid
from core_jobs.offline.outputs.forms import line

RUN, RESULTS, ERRORS = "run.json", "results.jsonl", "errors.jsonl"
_TAIL = 1 << 16  # bytes that are read at once, from the end


class OutputFolder:
    """Not thread-safe. Raises CoreError(INVALID) for the folder of another run, or an unusable one.

    run        what must be the same when a run goes on: name → value
    done       items that have a line already: the first ones
    failed     how many of them have failed
    """

    def __init__(self, path: Path, run: Mapping[str, Any]):
        self.path = path
        try:
            path.mkdir(parents=True, exist_ok=True)
            self._claim(dict(run))
            self._results = open(path / RESULTS, "ab")  # noqa: SIM115
            self._errors = open(path / ERRORS, "ab")  # noqa: SIM115
            last = max(_cut(self._results, path / RESULTS), _cut(self._errors, path / ERRORS))
        except OSError as error:
            raise invalid(f"the folder '{path}' cannot be used: {error.strerror}") from None
        self.done = last + 1
        self._latest: BinaryIO = self._results  # the file of the last line
        with open(path / ERRORS, "rb") as file:
            self.failed = sum(1 for _ in file)

    def _claim(self, run: dict[str, Any]) -> None:
        """Check that the folder is new, or belongs to this run."""
        file = self.path / RUN
        if not file.exists():
            if (self.path / RESULTS).exists():
                raise invalid(f"'{self.path}' has results, but no {RUN}; name another folder")
            temporary = self.path / f".{RUN}"
            temporary.write_bytes(orjson.dumps(run, option=orjson.OPT_INDENT_2))
            temporary.replace(file)
            return
        try:
            found = orjson.loads(file.read_bytes())
        except ValueError:
            found = {}
        different = [name for name in run if found.get(name) != run[name]]
        if different:
            name = different[0]
            raise invalid(
                f"'{self.path}' has the results of another run: '{name}' was {found.get(name)!r:.80}, and is "
                f"{run[name]!r:.80} now; name another folder with --output, or remove this one"
            )

    def succeeded(self, index: int, source: str, members: Mapping[str, Any]) -> None:
        """Append the line of an item that was answered. Items come in their order."""
        self._append(self._results, index, {"source": source, **members})

    def has_failed(self, index: int, source: str, kind: str, error: str) -> None:
        """Append the line of an item that has failed. Items come in their order."""
        self._append(self._errors, index, {"source": source, "kind": kind, "error": error})
        self.failed += 1

    def _append(self, file: BinaryIO, index: int, members: Mapping[str, Any]) -> None:
        if file is not self._latest:
            # A kill must not keep a line of one file and lose an earlier one of the other.
            self._latest.flush()
            self._latest = file
        file.write(line({"index": index, **members}))
        self.done = index + 1

    def flush(self) -> None:
        """Give what was appended to the system, so that it survives the end of this process."""
        self._results.flush()
        self._errors.flush()

    def close(self) -> None:
        self._results.close()
        self._errors.close()
        errors = self.path / ERRORS
        if not errors.stat().st_size:
            errors.unlink()


def _cut(file: BinaryIO, path: Path) -> int:
    """Remove an incomplete last line; return the index in the last complete one, -1 without one."""
    end = os.path.getsize(path)
    with open(path, "rb") as reader:
        complete = _line_end(reader, end)
        if complete < end:
            file.truncate(complete)
        if not complete:
            return -1
        start = _line_end(reader, complete - 1)
        reader.seek(start)
        index: int = orjson.loads(reader.read(complete - start))["index"]
        return index


def _line_end(reader: BinaryIO, before: int) -> int:
    """Return the place behind the last newline among the first `before` bytes; 0 without one."""
    at = before
    while at > 0:
        start = max(0, at - _TAIL)
        reader.seek(start)
        found = reader.read(at - start).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        at = start
    return 0
