"""Answers to one client, which are alike but for some parts.

Loop thread only; of use to compiled code alone.

Answers of a model to requests that are alike differ in their id, the shapes, the sizes and the numbers. So
only these are written, between texts that were written before.
"""

class RepeatedResponse:
    """An answer that was written, for a response whose outputs have the same names, types and ranks."""
