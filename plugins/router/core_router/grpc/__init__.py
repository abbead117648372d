"""gRPC between clients and servers: heads and messages pass as they are.

ClientLink ─► GrpcPort ─► UnaryCall, InferStream ─► choice ─► LinkPool ─► ServerLink ─► server

The modules in `native`, and those that need them, are there if libnghttp2 was when this package was built.
"""
