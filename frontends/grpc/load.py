"""The load report that a gRPC call returns in its trailers. Both transports call this: nghttp2 and grpcio."""

from __future__ import annotations

from frontends.grpc.call import GrpcCall
from frontends.grpc.status import Code
from frontends.shared.load_reports import FORMAT, REPORT, LoadReports

_BINARY = f"{REPORT}-bin"
_REFUSED = (Code.UNAUTHENTICATED, Code.PERMISSION_DENIED)
_NONE = ("", b"")


def load_of(reports: LoadReports, call: GrpcCall, code: int) -> tuple[str, bytes]:
    """Return name and value of the trailer with the load report of a call; empty ones for no report.

    It is text if the client has asked for it in a known format. Else it is an OrcaLoadReport, if responses
    have one that is not asked for. A caller that may not make the call gets none.
    code   the call's status code
    """
    if code in _REFUSED:
        return _NONE
    form = call.value(FORMAT)
    if form is not None and (text := reports.text(form)) is not None:
        return REPORT, text.encode()
    return _NONE if reports.unasked is None else (_BINARY, reports.unasked())
