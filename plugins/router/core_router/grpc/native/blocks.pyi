from collections.abc import Iterable

def field(block: bytes, name: bytes) -> bytes | None:
    """Return the value of a field of a block; None if it has none of that name."""

def status_of(block: bytes | None) -> int:
    """Return the gRPC status in a block; -1 for none, UNKNOWN for one that is no number."""

def fields_of(block: bytes) -> list[tuple[bytes, bytes]]:
    """Return names and values of a block."""

def block_of(fields: Iterable[tuple[bytes, bytes]]) -> bytes:
    """Return a block of names and values."""

def without(block: bytes, name: bytes) -> bytes:
    """Return a block without the fields of a name."""
