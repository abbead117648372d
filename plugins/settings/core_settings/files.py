"""SettingsFiles: the files in which the live settings of models outlive the server.

    {"settings": {"dynamic_batching": {"max_queue_delay_microseconds": 200}}, "number": 3, "history": […]}

Only `settings` is needed, so that people may write a file.
"""

from __future__ import annotations

import json
import os
import tempfile
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

from core.errors import internal, invalid
from core.repository import ModelSource
from core_settings.fields import Reader
from core_settings.live import merged
from core_settings.options import SettingsOptions
from core_settings.state import State

Stamp = tuple[int, int]
"""Time of the last change (ns) and size of a file."""

BESIDE = "configs/settings.json"
"""Path in a model's folder. No load follows from a change in `configs`, as one does elsewhere."""

_MOST_BYTES = 1 << 20


class SettingsFiles:
    """Reads and writes the files of one server. Thread-safe, but for two calls about one model."""

    def __init__(self, options: SettingsOptions):
        self.reads, self.writes = options.settings_read, options.settings_write
        self._folder = options.settings_folder
        self._known: dict[str, Stamp] = {}  # of the files as this process has read or written them

    def path_of(self, source: ModelSource) -> Path:
        """Return the path of a model's file."""
        if self._folder:
            return Path(self._folder) / f"{quote(str(source.key), safe='')}.json"
        return source.directory.path / BESIDE

    def read(self, source: ModelSource) -> State | None:
        """Return what a model's file says; None without a file, and if this process knows its content.

        A file without `number` has the number 0, and no history.
        Raises CoreError(INVALID) for a wrong file, and if it cannot be read.
        """
        if not self.reads:
            return None
        path = self.path_of(source)
        try:
            with path.open("rb") as file:
                stamp = _stamp(os.fstat(file.fileno()))
                if self._known.get(source.key) == stamp:
                    return None
                text = file.read(_MOST_BYTES + 1)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise invalid(f"live settings {path} cannot be read: {error.strerror}") from None
        state = _state(path, text)
        self._known[source.key] = stamp
        return state

    def write(self, source: ModelSource, state: State) -> Path:
        """Write a model's file in one step; return its path.

        The oldest entries of the history are left out if the file would be too large to read.
        Raises CoreError(INTERNAL) on a failure, and if the folder of the model is only a copy.
        """
        path, directory = self.path_of(source), source.directory
        if not self._folder and directory.address != str(directory.path):
            raise internal(
                f"live settings of model '{source.name}' cannot be written: it comes from "
                f"{directory.address}, and its folder here is a copy; choose a folder with --settings-folder"
            )
        text = _text(path, state)
        try:
            path.parent.mkdir(exist_ok=True)
            number, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
            try:
                with os.fdopen(number, "wb") as file:
                    file.write(text)
                    file.flush()
                    os.fsync(file.fileno())
                    os.fchmod(file.fileno(), 0o644)
                    stamp = _stamp(os.fstat(file.fileno()))
                os.replace(name, path)
            except BaseException:
                os.unlink(name)
                raise
        except OSError as error:
            raise internal(f"live settings {path} cannot be written: {error.strerror}") from None
        self._known[source.key] = stamp
        return path


def _stamp(status: os.stat_result) -> Stamp:
    return status.st_mtime_ns, status.st_size


def _state(path: Path, text: bytes) -> State:
    """Return the state in a file. Raises CoreError(INVALID)."""
    root = f"live settings {path}"
    if len(text) > _MOST_BYTES:
        raise invalid(f"{root} has more than {_MOST_BYTES} bytes")
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise invalid(f"{root} is not JSON: {error}") from None
    known = ("settings", "number", "history")
    if not isinstance(value, Mapping) or "settings" not in value or set(value) - set(known):
        raise invalid(
            f'{root}: expected an object with "settings", and maybe "number" and "history"'
        )
    number = value.get("number", 0)
    if type(number) is not int or number < 0:
        raise invalid(f"{root}: number is {number!r}, expected a whole number from 0")
    return State(
        number,
        merged({}, Reader(root).read(value["settings"])),
        _history(root, value.get("history", [])),
    )


def _history(root: str, value: Any) -> tuple[Mapping[str, Any], ...]:
    if not isinstance(value, list) or not all(map(_is_entry, value)):
        raise invalid(f'{root}: history is no list of objects with "number" and "settings"')
    readers = [Reader(f"{root}: history[{index}].settings") for index in range(len(value))]
    return tuple(
        {**entry, "settings": merged({}, reader.read(entry["settings"]))}
        for reader, entry in zip(readers, value, strict=True)
    )


def _is_entry(value: Any) -> bool:
    return isinstance(value, Mapping) and type(value.get("number")) is int and "settings" in value


def _text(path: Path, state: State) -> bytes:
    """Return the text of a file, with as much of the history as fits. Raises CoreError(INTERNAL)."""

    def without(oldest: int) -> bytes:
        part = replace(state, history=state.history[oldest:])
        return (json.dumps(part.as_json(), indent=2, ensure_ascii=False) + "\n").encode()

    def fits(oldest: int) -> bool:
        return len(without(oldest)) <= _MOST_BYTES

    entries = len(state.history)
    if not fits(entries):
        raise internal(
            f"live settings {path} cannot be written: it would have more than {_MOST_BYTES} bytes"
        )
    return without(0 if fits(0) else bisect_left(range(entries), True, key=fits))
