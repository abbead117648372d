"""Fast parsing and writing of messages that differ only in the bytes of their tensors.

Loop thread only; for compiled code only.

Clients often repeat a request with other bytes in its tensors, and responses repeat likewise. If all bytes
outside of the tensors equal those of a kept message, they are not parsed or written again.
"""

from core.request import InferenceRequest

class MessageReader:
    """Base of RequestReader: parses messages, and keeps some of them, up to 8 KiB, for similar later ones."""

    def read(self, data: bytes) -> InferenceRequest | None: ...

class RepeatedMessage:
    """A parsed message, kept to parse messages that differ only in the bytes of their tensors."""

class RepeatedResponseMessage:
    """A written message, kept to write responses that differ only in the bytes of their tensors."""
