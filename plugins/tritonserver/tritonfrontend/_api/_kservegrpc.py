"""KServeGrpc: the gRPC port."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Any

import tritonserver

from tritonfrontend._api._service import Service, ServiceOptions


class Grpc_compression_level(enum.IntEnum):
    """How much responses are compressed."""

    NONE = 0
    LOW = 1
    MED = 2
    HIGH = 3
    COUNT = 4


_LEVELS = ("none", "low", "medium", "high")


class KServeGrpc(Service):
    """The gRPC port of a server."""

    FRONTEND = "grpc"
    Grpc_compression_level = Grpc_compression_level

    @dataclass
    class Options(ServiceOptions):
        """Options by Triton's names: the flags --grpc-… of docs/operate/options.md, ages and times in ms."""

        LIMITS = {"port": (0, 65535), "infer_compression_level": (0, 3)}

        address: str = "0.0.0.0"
        port: int = 8001
        reuse_port: bool = False
        use_ssl: bool = False
        server_cert: str = ""
        server_key: str = ""
        root_cert: str = ""
        use_mutual_auth: bool = False
        keepalive_time_ms: int = 7200000
        keepalive_timeout_ms: int = 20000
        keepalive_permit_without_calls: bool = False
        http2_max_pings_without_data: int = 2
        http2_min_recv_ping_interval_without_data_ms: int = 300000
        http2_max_ping_strikes: int = 2
        max_connection_age_ms: int = 0
        max_connection_age_grace_ms: int = 0
        infer_compression_level: int = 0
        infer_thread_count: int = 2
        infer_allocation_pool_size: int = 8
        max_response_pool_size: int = 2147483647
        forward_header_pattern: str = ""

        def __post_init__(self) -> None:
            self.infer_compression_level = int(self.infer_compression_level)
            super().__post_init__()
            if self.use_ssl and not (self.server_cert and self.server_key):
                raise tritonserver.InvalidArgumentError(
                    "use_ssl needs the files server_cert and server_key"
                )

        def as_core(self) -> dict[str, Any]:
            return {
                "grpc_address": self.address,
                "grpc_port": self.port,
                "reuse_grpc_port": self.reuse_port,
                "grpc_use_ssl": self.use_ssl,
                "grpc_server_cert": self.server_cert,
                "grpc_server_key": self.server_key,
                "grpc_root_cert": self.root_cert,
                "grpc_use_ssl_mutual": self.use_mutual_auth,
                "grpc_keepalive_time": self.keepalive_time_ms,
                "grpc_keepalive_timeout": self.keepalive_timeout_ms,
                "grpc_keepalive_permit_without_calls": self.keepalive_permit_without_calls,
                "grpc_http2_max_pings_without_data": self.http2_max_pings_without_data,
                "grpc_http2_min_recv_ping_interval_without_data": (
                    self.http2_min_recv_ping_interval_without_data_ms
                ),
                "grpc_http2_max_ping_strikes": self.http2_max_ping_strikes,
                "grpc_infer_response_compression_level": _LEVELS[self.infer_compression_level],
                "grpc_infer_allocation_pool_size": self.infer_allocation_pool_size,
                "grpc_max_response_pool_size": self.max_response_pool_size,
                "grpc_header_forward_pattern": self.forward_header_pattern,
                # 0 too: the options of a port that was open before would stay.
                "grpc_max_connection_age": self.max_connection_age_ms,
                "grpc_max_connection_age_grace": self.max_connection_age_grace_ms,
            }
