"""The transport's options as the engines take them: arguments, address, certificates."""

from __future__ import annotations

import ssl
from pathlib import Path

from core.errors import invalid
from core.options import Options

ChannelArguments = list[tuple[str, int]]

MOST_MESSAGE_BYTES = 2**31 - 1  # each way, as in Triton
_COMPRESSION_LEVELS = {"none": 0, "low": 1, "medium": 2, "high": 3}
_ZLIB_LEVELS = {"none": 0, "low": 1, "medium": 6, "high": 9}


def channel_arguments(options: Options) -> ChannelArguments:
    """What a server of grpcio is made with; times in milliseconds."""
    arguments = [
        ("grpc.max_receive_message_length", MOST_MESSAGE_BYTES),
        ("grpc.max_send_message_length", MOST_MESSAGE_BYTES),
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


def compresses(options: Options) -> bool:
    """Whether responses of inference are compressed."""
    return options.grpc_infer_response_compression_level != "none"


def compression_level(options: Options) -> int:
    """zlib's level for responses of inference; 0 if they are not compressed."""
    return _ZLIB_LEVELS[options.grpc_infer_response_compression_level]


def address(options: Options) -> str:
    """host:port to listen on, with brackets around an IPv6 address."""
    host = options.grpc_address
    if ":" in host and not host.startswith(("[", "unix:")):
        host = f"[{host}]"
    return f"{host}:{options.grpc_port}"


def tls_context(options: Options) -> ssl.SSLContext | None:
    """The certificates of a TLS server, None for one without TLS.

    Raises CoreError(INVALID) for a file that is not named, cannot be read or holds something else.
    """
    mutual = options.grpc_use_ssl_mutual
    if not (options.grpc_use_ssl or mutual):
        return None
    pem("grpc-server-key", options.grpc_server_key)
    pem("grpc-server-cert", options.grpc_server_cert)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["h2"])
    try:
        # A password, so that a key that has one is refused and not asked about on the terminal.
        context.load_cert_chain(options.grpc_server_cert, options.grpc_server_key, password="")
    except (ssl.SSLError, OSError, ValueError) as error:
        raise invalid(
            f"--grpc-server-cert '{options.grpc_server_cert}' and --grpc-server-key "
            f"'{options.grpc_server_key}' are no certificate with its unencrypted key: {error}"
        ) from None
    if mutual or options.grpc_root_cert:
        pem("grpc-root-cert", options.grpc_root_cert)
        try:
            context.load_verify_locations(options.grpc_root_cert)
        except (ssl.SSLError, OSError) as error:
            raise invalid(
                f"--grpc-root-cert '{options.grpc_root_cert}' holds no certificates: {error}"
            ) from None
    if mutual:
        context.verify_mode = ssl.CERT_REQUIRED
    return context


def pem(flag: str, path: str) -> bytes:
    """What the file of a flag holds. Raises CoreError(INVALID) without a file that can be read."""
    if not path:
        raise invalid(f"gRPC over TLS needs a PEM file; name it with --{flag}")
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise invalid(f"--{flag} '{path}' cannot be read: {error.strerror}") from None
