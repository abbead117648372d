"""The control operations capture.start, capture.stop and capture.status."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

from core.control import Area, Changed, change, question
from core.control.exchange import ProcessResults
from core.control.operation import Arguments
from core.errors import invalid, unavailable
from core_capture.options import CaptureOptions
from core_capture.recording.recorder import Recorder
from core_capture.recording.selection import Selection

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


def _of_each(answers: ProcessResults, arguments: Arguments) -> list[dict[str, Any]]:
    answers.all()
    return [{"worker": number, **each[0]} for number, each in sorted(answers.values.items())]


class CaptureControl(Area, name="capture"):
    """Starts and stops the capture of a running server. Operators choose no path outside of its folder."""

    def __init__(self, recorder: Recorder, options: CaptureOptions):
        self._recorder = recorder
        self._options = options

    @change("trace", subject="capture", otherwise="the others do so")
    async def start(
        self,
        name: str = "",
        rate: float = 1.0,
        models: list[str] | None = None,
        callers: list[str] | None = None,
        latency_ms: float = 0.0,
        errors: bool = False,
        answers: bool = False,
    ) -> Changed:
        """Record inference requests into the folder `name` below that of --capture-live."""
        root = self._options.capture_live or self._options.capture
        if not root:
            raise unavailable("captures need a folder: start the server with --capture-live=FOLDER")
        if name and _NAME.fullmatch(name) is None:
            raise invalid(
                f"'{name}' is no name of a folder: use letters, digits, '.', '_' and '-', "
                "beginning with a letter or digit"
            )
        selection = Selection().changed(
            {
                "rate": rate,
                "models": models or [],
                "callers": callers or [],
                "latency_ms": latency_ms,
                "errors": errors,
                "answers": answers,
            }
        )
        folder = str(Path(root, name)) if name else root
        self._recorder.start(folder, selection)
        return Changed(undo=self._begin_without_files)

    @change("trace", subject="capture", otherwise="the others do so")
    async def stop(self) -> Changed:
        """End the capture when the calls that have ended are written."""
        if not self._recorder.running:
            return Changed(idle=True)
        writer = self._recorder.stop()
        self._begin_without_files()
        if writer is not None:
            await asyncio.to_thread(writer.close)
        return Changed()

    def _begin_without_files(self) -> None:
        """Go on with the metrics of drift, if the server has them."""
        self._recorder.stop()
        if self._recorder.drift is not None:
            self._recorder.start("", Selection.of(self._options))

    @question("trace", _of_each)
    async def status(self) -> list[dict[str, Any]]:
        """Return for each process whether a capture runs, what it records, and what it has written."""
        return [self._recorder.status()]
