"""What the v2 protocol bounds and reserves, over HTTP and over gRPC alike."""

from __future__ import annotations

# A request of some megabytes can hold a million of anything, and each would cost a Python object.
MOST_ENTRIES = 10_000  # inputs, outputs and parameters, each
MOST_DIMENSIONS = 100

# Parameters with a meaning of their own: no header may be forwarded under these names.
RESERVED = frozenset(
    (
        "sequence_id",
        "sequence_start",
        "sequence_end",
        "priority",
        "timeout",
        "headers",
        "binary_data_output",
    )
)
