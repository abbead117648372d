class Memory:
    """Bytes of an output of a native backend, read only, with the buffer protocol.

    Owns a block of memory, or a part of what another one owns. When the last one goes the block goes back
    to the pool of its instance, or its backend is told. Any thread.
    """

    def __len__(self) -> int: ...
