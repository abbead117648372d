"""Outgoing: sends large responses in pieces. Loop thread only; for compiled code only."""

class Outgoing:
    """The buffers that a connection has still to send.

    A transport copies the bytes that the kernel does not take at once: pieces keep this copy small.
    """

    waits: bool
