"""What ends a run for which nobody waits any more."""

from __future__ import annotations

from typing import Any

from core import termination


class Termination(termination.Termination):
    """The flag in one instance's RunOptions, which ONNX Runtime reads between two nodes of a graph."""

    def __init__(self, options: Any):
        super().__init__()
        self._options = options

    def stop(self) -> None:
        self._options.terminate = True

    def clear(self) -> None:
        self._options.terminate = False
