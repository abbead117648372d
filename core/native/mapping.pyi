from collections.abc import Buffer as _Buffer  # type: ignore[attr-defined, unused-ignore]

class Mapping(_Buffer):  # type: ignore[misc, unused-ignore]
    """Part of a file, mapped shared, to be read and written through the buffer protocol.

    It is unmapped when it and all views of it are gone, in any order. If its file becomes smaller or the
    system has no memory for a page, who touches what is gone finds zeros from that page on, writes to
    nobody, and `lost` is true for good. Any thread.

    file        descriptor, to read and write; it may be closed afterwards
    offset      bytes, whole pages
    byte_size   more than 0; at most what the file has
    Raises OSError when the system refuses.
    """

    def __init__(self, file: int, offset: int, byte_size: int) -> None: ...
    @property
    def lost(self) -> bool:
        """Whether somebody has met bytes that are gone."""
    @property
    def address(self) -> int:
        """Of the first byte."""
    def __len__(self) -> int: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...
