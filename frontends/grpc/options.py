"""GrpcOptions: the flags of gRPC."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from core.options import Listener, Options, Section, group
from core.options.values import BOOL, PORT, STRING, choice, integer
from frontends.shared.forms import PATTERN, restricted
from frontends.shared.options import SharedOptions

_grpc = group("GRPC")

_ONE_LOOP = "one event loop serves all connections"


@dataclass(kw_only=True)
class GrpcOptions(Section):
    # fmt: off
    allow_grpc: bool = _grpc(BOOL, True,
        "Serve gRPC.")
    grpc_address: str = _grpc(STRING, "0.0.0.0",
        "Address of gRPC; unix:/path is a Unix domain socket, without a port.")
    grpc_port: int = _grpc(PORT, 8001, "Port of gRPC.")
    grpc_engine: str = _grpc(choice("auto", "native", "grpcio"), "auto",
        "Implementation of HTTP/2: native (libnghttp2) is faster, grpcio is always available. auto uses "
        "native if it was built.")
    reuse_grpc_port: bool = _grpc(BOOL, False,
        "Permit several servers to share the port of gRPC.")
    grpc_header_forward_pattern: str = _grpc(PATTERN, "",
        "Forward metadata whose keys match this regular expression as parameters of the request.")
    grpc_infer_thread_count: int = _grpc(integer(2, 128), 2,
        "Threads that handle inference requests.", idle=_ONE_LOOP)
    grpc_infer_allocation_pool_size: int = _grpc(integer(), 8,
        "Request objects that are kept for reuse.", idle="memory of requests is not pooled")
    grpc_max_response_pool_size: int = _grpc(integer(1), 2**31 - 1,
        "Response objects that are kept for reuse.", idle="memory of responses is not pooled")
    grpc_max_message_size: int = _grpc(integer(1, 2**31 - 1), 2**31 - 1,
        "Largest message of a client in bytes, before and after decompression.")
    grpc_message_timeout_secs: int = _grpc(integer(), 60,
        "Seconds in which a message must arrive, plus one second for each 64 KiB that arrived. 0: no limit. "
        "Not with --grpc-engine=grpcio.")
    grpc_max_concurrent_streams: int = _grpc(integer(1, 2**31 - 1), 4096,
        "Largest number of simultaneous calls of one connection; clients queue more.")
    grpc_max_connections: int = _grpc(integer(), 0,
        "Largest number of connections; others are closed. 0: as many as open files permit. "
        "Not with --grpc-engine=grpcio.")
    grpc_use_ssl: bool = _grpc(BOOL, False, "Serve gRPC over TLS.")
    grpc_use_ssl_mutual: bool = _grpc(BOOL, False,
        "Require a certificate of each client; implies --grpc-use-ssl.")
    grpc_server_cert: str = _grpc(STRING, "", "PEM file with the server's certificate.")
    grpc_server_key: str = _grpc(STRING, "", "PEM file with the server's key.")
    grpc_root_cert: str = _grpc(STRING, "",
        "PEM file with the certificates that verify those of clients.")
    grpc_infer_response_compression_level: str = _grpc(choice("none", "low", "medium", "high"), "none",
        "Compression of inference responses.")
    grpc_keepalive_time: int = _grpc(integer(1), 7_200_000,
        "Milliseconds without traffic until the server sends a ping.")
    grpc_keepalive_timeout: int = _grpc(integer(1), 20_000,
        "Milliseconds that the server waits for the response to a ping.")
    grpc_keepalive_permit_without_calls: bool = _grpc(BOOL, False,
        "Send pings also while no call runs.")
    grpc_http2_max_pings_without_data: int = _grpc(integer(), 2,
        "Largest number of pings without data between them. 0: no limit.")
    grpc_http2_min_recv_ping_interval_without_data: int = _grpc(integer(), 300_000,
        "Milliseconds between two pings of a client without data; earlier pings count as strikes.")
    grpc_http2_max_ping_strikes: int = _grpc(integer(), 2,
        "Number of strikes that closes a connection. 0: no limit.")
    grpc_max_connection_age: int = _grpc(integer(), 0,
        "Milliseconds after which a connection is closed. 0: never.")
    grpc_max_connection_age_grace: int = _grpc(integer(), 0,
        "Milliseconds that running calls have when their connection reaches that age. 0: no limit.")
    grpc_restricted_protocol: dict[str, tuple[str, str]] = _grpc(restricted("protocol"), {},
        "Kinds of calls that require the metadata triton-grpc-protocol-<key> with <value>.")
    # fmt: on

    @property
    def has_tls(self) -> bool:
        return self.grpc_use_ssl or self.grpc_use_ssl_mutual

    reads_again = has_tls  # certificates

    def listeners(self, options: Options) -> Sequence[Listener]:
        if not self.allow_grpc:
            return ()
        return (
            Listener(
                "grpc",
                "GRPC",
                self.grpc_address,
                self.grpc_port,
                shared=self.reuse_grpc_port,
                mode=SharedOptions.of(options).unix_socket_mode,
                encrypted=self.has_tls,
                mutual=self.grpc_use_ssl_mutual,
            ),
        )
