"""Compiled modules of the gRPC frontend: the path of every request."""
