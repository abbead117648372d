"""Answers that are sent piece by piece. Loop thread only; of use to compiled code alone."""

class Outgoing:
    """Buffers that a connection has to send, too large for the transport to keep while the client reads.

    A transport that gets a large answer in one go copies what the kernel does not take.
    """

    waits: bool
