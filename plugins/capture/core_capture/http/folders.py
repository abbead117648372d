"""CaptureFolders: the captures that the routes name, which are folders below one root."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

from core.errors import not_found, unavailable
from core_capture.options import CaptureOptions
from core_capture.records.reader import SUFFIX

ROOT = "."  # the name of the root itself, into which a capture without a name goes


class CaptureFolders:
    """Thread-safe. The root is the folder of --capture-live, else that of --capture.

    root   None if the server has neither
    """

    def __init__(self, options: CaptureOptions):
        folder = options.capture_live or options.capture
        self.root = Path(folder) if folder else None

    def listed(self) -> list[dict[str, Any]]:
        """Return name, bytes, files and the time of the last record of each capture, the latest first."""
        if self.root is None or not self.root.is_dir():
            return []
        found = []
        for folder in (self.root, *self.root.iterdir()):
            files = []
            with suppress(OSError):  # a file, or a folder that this user may not read
                for path in folder.glob(f"*{SUFFIX}"):
                    with suppress(FileNotFoundError):  # the server removes the oldest files
                        files.append(path.stat())
            if files:
                found.append(
                    {
                        "name": ROOT if folder == self.root else folder.name,
                        "bytes": sum(each.st_size for each in files),
                        "files": len(files),
                        "changed_ms": max(each.st_mtime_ns for each in files) // 1_000_000,
                    }
                )
        return sorted(found, key=lambda each: -each["changed_ms"])

    def folder(self, name: str) -> Path:
        """Return the folder of a capture. Raises CoreError: NOT_FOUND for an unknown name, UNAVAILABLE
        without a root."""
        if self.root is None:
            raise unavailable("captures need a folder: start the server with --capture-live=FOLDER")
        found = self.root if name == ROOT else self.root / name
        is_below = name == ROOT or (name == found.name and name not in ("", ".."))
        with suppress(OSError, ValueError):  # a name that no file can have
            if is_below and found.is_dir() and any(found.glob(f"*{SUFFIX}")):
                return found
        raise not_found(f"there is no capture '{name[:64]}' in {self.root}")
