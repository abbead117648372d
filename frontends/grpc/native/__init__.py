"""Compiled rooms of the gRPC frontend: what every request walks through."""
