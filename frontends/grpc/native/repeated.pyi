"""Fast parsing and writing of messages that differ only in the bytes of their tensors.

Loop thread only; for compiled code only.

Clients often repeat a request with other bytes in its tensors, and responses repeat likewise. The other bytes
are compared with a kept message instead of parsing or writing them again.
"""

from core.request import InferenceRequest

class MessageReader:
    """Parses messages; keeps some earlier messages, in slots by their sizes."""

    def read(self, data: bytes) -> InferenceRequest | None: ...

class RepeatedMessage:
    """A parsed message, for messages with other bytes in their tensors."""

class RepeatedResponseMessage:
    """A written message, for responses whose tensors have the same names, types and shapes."""
