from collections.abc import Buffer as _Buffer  # type: ignore[attr-defined, unused-ignore]

class Mapping(_Buffer):  # type: ignore[misc, unused-ignore]
    """Shared, writable mapping of a part of a file, with the buffer protocol. Thread-safe.

    It is unmapped when it and all its views are freed, in any order. If the file becomes smaller, or the
    system has no memory for a page, an access from that page on reads zeros and its writes are lost; `lost`
    is then True forever.

    file        descriptor, open for reading and writing; it may be closed afterwards
    offset      start of the part in the file in bytes, a multiple of the page size
    byte_size   length of the part, more than 0; the part should lie within the file
    Raise OSError if the mapping fails, MemoryError without memory to register it.
    """

    def __init__(self, file: int, offset: int, byte_size: int) -> None: ...
    @property
    def lost(self) -> bool:
        """Whether an access of this process has hit a missing page."""
    @property
    def address(self) -> int:
        """Address of the first byte."""
    def __len__(self) -> int: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...
