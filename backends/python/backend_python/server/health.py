"""Metrics of the processes of Python models."""

from __future__ import annotations

from core.telemetry.registry import registry


class Health:
    """The metrics of one instance. The instances of a model version share their samples.

    Not thread-safe: call from the event loop only.
    """

    def __init__(self, model: str, version: int):
        labels = {"model": model, "version": str(version)}
        self._ready_family = registry.family(
            "core_python_ready",
            "Number of instances of a Python model whose process can serve",
            "gauge",
        )
        self._restarts_family = registry.family(
            "core_python_restarts",
            "Number of times that a process of a Python model has been started again",
            "counter",
        )
        self._ready = self._ready_family.metric(labels)
        self._restarts = self._restarts_family.metric(labels)
        self._is_ready = False

    def serves(self, ready: bool) -> None:
        """Record whether the instance has a process that can serve."""
        if ready != self._is_ready:
            self._is_ready = ready
            self._ready.increment(1 if ready else -1)

    def restarted(self) -> None:
        self._restarts.increment(1)

    def close(self) -> None:
        """Remove the metrics of the instance, which is gone."""
        self.serves(False)
        self._ready_family.remove(self._ready)
        self._restarts_family.remove(self._restarts)
        registry.remove(self._ready_family)
        registry.remove(self._restarts_family)
