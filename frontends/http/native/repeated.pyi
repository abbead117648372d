"""What is the same in the requests of a client, and in their answers.

Loop thread only; of use to compiled code alone.

Clients ask a model again and again with the same JSON, and other numbers in it or behind it; the answers
differ in their numbers alone. So the JSON is compared, and neither read nor written again.
"""

class RepeatedRequest:
    """A request that was read, for a body that differs from its own in numbers alone."""

class RepeatedAnswer:
    """An answer that was written, for a response that has tensors of the same names, types and shapes."""
