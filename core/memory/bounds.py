"""Whether a place that a request names lies within its region."""

from __future__ import annotations

from core.errors import CoreError, internal, invalid

_MOST = 2**64 - 1  # what a size can be on the wire


def check_place(name: str, size: int, offset: int, byte_size: int) -> None:
    """Raise CoreError(INVALID) unless `byte_size` bytes from `offset` on are among the `size` of region
    `name`."""
    if not 0 <= offset < size:
        raise invalid(f"Invalid offset for shared memory region: '{name}'")
    if offset and byte_size > _MOST - offset:
        raise invalid(
            f"Integer overflow detected: byte_size ({byte_size}) + offset ({offset}) exceeds maximum value "
            f"({_MOST}) for region '{name}'"
        )
    if not 0 <= byte_size <= size - offset:
        raise invalid(f"Invalid offset + byte size for shared memory region: '{name}'")


def too_small(output: str, found: int, needed: int) -> CoreError:
    """The error of an output that is larger than the memory that its request names; sizes in bytes."""
    return internal(
        f"shared memory size specified with the request for output '{output}' ({found} bytes) should be at "
        f"least {needed} bytes to hold the results"
    )
