"""Compiled modules of the HTTP frontend: the fast path of connections, and the codec of v2 JSON."""
