"""The transport's options as the engines take them: arguments, address, certificates."""

from __future__ import annotations

from dataclasses import replace

from core.options import Options
from frontends.grpc.options import GrpcOptions
from frontends.shared import unix_sockets
from frontends.shared.inherited_sockets import address_of

ChannelArguments = list[tuple[str, int]]

MOST_MESSAGE_BYTES = 2**31 - 1  # of an answer, as in Triton
_COMPRESSION_LEVELS = {"none": 0, "low": 1, "medium": 2, "high": 3}
_ZLIB_LEVELS = {"none": 0, "low": 1, "medium": 6, "high": 9}


def options_of(options: Options) -> GrpcOptions:
    """Return the options of gRPC; with several workers, `reuse_grpc_port` is true: they share the port."""
    found = GrpcOptions.of(options)
    return replace(found, reuse_grpc_port=found.reuse_grpc_port or options.workers > 1)


def channel_arguments(options: GrpcOptions) -> ChannelArguments:
    """Return the channel arguments of a grpcio server; times in milliseconds."""
    arguments = [
        ("grpc.max_receive_message_length", options.grpc_max_message_size),
        ("grpc.max_send_message_length", MOST_MESSAGE_BYTES),
        ("grpc.max_concurrent_streams", options.grpc_max_concurrent_streams),
        ("grpc.so_reuseport", int(options.reuse_grpc_port)),
        ("grpc.keepalive_time_ms", options.grpc_keepalive_time),
        ("grpc.keepalive_timeout_ms", options.grpc_keepalive_timeout),
        (
            "grpc.keepalive_permit_without_calls",
            int(options.grpc_keepalive_permit_without_calls),
        ),
        ("grpc.http2.max_pings_without_data", options.grpc_http2_max_pings_without_data),
        (
            "grpc.http2.min_ping_interval_without_data_ms",
            options.grpc_http2_min_recv_ping_interval_without_data,
        ),
        ("grpc.http2.max_ping_strikes", options.grpc_http2_max_ping_strikes),
    ]
    if options.grpc_max_connection_age:
        arguments.append(("grpc.max_connection_age_ms", options.grpc_max_connection_age))
    if options.grpc_max_connection_age_grace:
        arguments.append(
            ("grpc.max_connection_age_grace_ms", options.grpc_max_connection_age_grace)
        )
    if level := _COMPRESSION_LEVELS[options.grpc_infer_response_compression_level]:
        # A level and not an algorithm: the algorithm is then one that the client accepts.
        arguments.append(("grpc.default_compression_level", level))
    return arguments


def compression_level(options: GrpcOptions) -> int:
    """Return zlib's level for responses of inference; 0 if they are not compressed."""
    return _ZLIB_LEVELS[options.grpc_infer_response_compression_level]


def address(options: GrpcOptions) -> str:
    """Return host:port on which to listen, with brackets around an IPv6 address; or unix:/path."""
    host = options.grpc_address
    if unix_sockets.is_unix(host):
        return host
    return address_of(host, options.grpc_port)
