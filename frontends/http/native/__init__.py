"""Compiled modules of the HTTP frontend: the fast path of every request."""
