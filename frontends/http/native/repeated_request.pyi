"""RepeatedRequest: fast parsing of similar requests. Loop thread only; for compiled code only.

A client often repeats the same JSON with another id, other shapes, sizes and numbers. The JSON is compared
with the last one, and only these parts are parsed.
"""

class RepeatedRequest:
    """A parsed request, kept to parse bodies whose JSON differs only in id, shapes, sizes and numbers."""
