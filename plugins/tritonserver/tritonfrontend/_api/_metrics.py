"""Metrics: the port of the metrics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tritonfrontend._api._service import Service, ServiceOptions


class Metrics(Service):
    """The port with GET /metrics."""

    FRONTEND = "metrics"

    @dataclass
    class Options(ServiceOptions):
        """thread_count has no effect: one event loop serves all connections."""

        LIMITS = {"port": (0, 65535), "thread_count": (1, 2**31 - 1)}

        address: str = "0.0.0.0"
        port: int = 8002
        thread_count: int = 1

        def as_core(self) -> dict[str, Any]:
            return {"metrics_address": self.address, "metrics_port": self.port}
