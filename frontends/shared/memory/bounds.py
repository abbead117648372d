"""Checks that a place which a request names lies within its region."""

from __future__ import annotations

from core.errors import invalid

_MOST = 2**64 - 1  # the largest size on the wire


def check_place(name: str, size: int, offset: int, byte_size: int) -> None:
    """Raise CoreError(INVALID) unless `byte_size` bytes from `offset` on lie within a region of `size` bytes.

    name   of the region, for errors
    """
    if not 0 <= offset < size:
        raise invalid(f"Invalid offset for shared memory region: '{name}'")
    if offset and byte_size > _MOST - offset:
        raise invalid(
            f"Integer overflow detected: byte_size ({byte_size}) + offset ({offset}) exceeds maximum value "
            f"({_MOST}) for region '{name}'"
        )
    if not 0 <= byte_size <= size - offset:
        raise invalid(f"Invalid offset + byte size for shared memory region: '{name}'")
