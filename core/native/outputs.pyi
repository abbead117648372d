class OutputMemory:
    """Bytes of an output of a native backend: read-only, with the buffer protocol.

    It owns a block of memory, or refers to a part of another OutputMemory's block. When the last of them is
    freed, the block returns to the pool of its instance, or the backend's `release` is called. Thread-safe.
    """

    def __len__(self) -> int: ...
