"""Requests of one client, which are alike but for some parts.

Loop thread only; of use to compiled code alone.

A client asks a model again and again with the same JSON but for its id, the shapes, the sizes and the
numbers. So the JSON is compared with the one before, and only these parts are read.
"""

class RepeatedRequest:
    """A request that was read, for a body that differs from its own in these parts alone."""
