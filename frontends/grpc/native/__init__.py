"""Compiled modules of the gRPC frontend: HTTP/2 connections, calls, and the codec of inference messages."""
