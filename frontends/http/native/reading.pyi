"""Requests of the lane whose JSON takes long to read; of use to compiled code alone."""
