"""The load report that a gRPC call returns in its trailers. Both transports call this: nghttp2 and grpcio."""

from __future__ import annotations

from frontends.grpc.call import GrpcCall
from frontends.grpc.method import LoadFunction
from frontends.grpc.status import Code
from frontends.shared.load_reports import FORMAT

_REFUSED = (Code.UNAUTHENTICATED, Code.PERMISSION_DENIED)


def load_of(load: LoadFunction, call: GrpcCall, code: int) -> bytes:
    """Return the load report that the client of a call has asked for.

    b"" if it has not asked, has asked for an unknown format, or may not make the call.
    code   the call's status code
    """
    if code in _REFUSED or (form := call.value(FORMAT)) is None:
        return b""
    return (load(form) or "").encode()
