"""KServeHttp: the HTTP port."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tritonfrontend._api._service import Service, ServiceOptions


class KServeHttp(Service):
    """The HTTP port of a server: the v2 protocol, generate, and what plugins add."""

    FRONTEND = "http"

    @dataclass
    class Options(ServiceOptions):
        """thread_count has no effect: one event loop serves all connections."""

        LIMITS = {"port": (0, 65535), "thread_count": (1, 2**31 - 1)}

        address: str = "0.0.0.0"
        port: int = 8000
        reuse_port: bool = False
        thread_count: int = 8
        header_forward_pattern: str = ""

        def as_core(self) -> dict[str, Any]:
            return {
                "http_address": self.address,
                "http_port": self.port,
                "reuse_http_port": self.reuse_port,
                "http_thread_count": self.thread_count,
                "http_header_forward_pattern": self.header_forward_pattern,
            }
