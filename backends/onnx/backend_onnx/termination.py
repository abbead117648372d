"""End a run after all requests of its batch are cancelled."""

from __future__ import annotations

from typing import Any

from core import termination


class Termination(termination.Termination):
    """Set the flag in one instance's RunOptions that ONNX Runtime reads between two nodes of a graph."""

    def __init__(self, options: Any):
        super().__init__()
        self._options = options

    def stop(self) -> None:
        self._options.terminate = True

    def clear(self) -> None:
        self._options.terminate = False
