"""Headers that hold the secrets of restricted protocols."""

from __future__ import annotations

from core.options import Options
from frontends.grpc.interceptors import PREFIX
from frontends.grpc.options import GrpcOptions
from frontends.http.options import HttpOptions


def restricted_headers(options: Options) -> tuple[str, ...]:
    """Return the names of the headers of --http-restricted-api and --grpc-restricted-protocol."""
    http = HttpOptions.of(options).http_restricted_api.values()
    grpc = GrpcOptions.of(options).grpc_restricted_protocol.values()
    return (*(name for name, _ in http), *(PREFIX + name for name, _ in grpc))
