"""Requests of the fast path whose JSON takes long to read; of use to compiled code alone."""
