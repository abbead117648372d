"""gRPC: the v2 inference protocol and the health protocol.

    connection ─► engine ─► method of a service (bytes in, bytes out) ─► core.server

engine_native.py serves on libnghttp2, where that was built, else engine_grpcio.py. No other file knows a
transport.
"""
