"""Outgoing: sends large responses in pieces. Loop thread only; for compiled code only."""

class Outgoing:
    """Buffers of large responses that a connection still has to write.

    A transport copies the bytes that the kernel does not take at once: writing in pieces of 1 MiB keeps this
    copy small. `waits` is True while there are buffers.
    """

    waits: bool
