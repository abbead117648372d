"""gRPC: the v2 inference protocol and the health protocol.

    connection ─► engine ─► method of a service (bytes in, bytes out) ─► core.server

frontend.py          GrpcFrontend: start, stop
engine_grpcio.py     the transport; the only file here that knows grpcio
                     (transport.py: its options as grpcio takes them)
table.py             every method with its path, its category and its function
method.py restricted.py   what a method is · methods that need a secret in their metadata
services/            the methods, one file for each area
protocol/            messages: bytes → InferenceRequest, InferenceResponse → bytes
call.py status.py    what a method sees of its call · kinds of errors as status codes
intake.py            what is in flight, so that a stop can wait for it
"""

from frontends.grpc.frontend import GrpcFrontend

__all__ = ["GrpcFrontend"]
