"""What is the same in the messages of clients, and in their answers.

Loop thread only; of use to compiled code alone.

Clients ask a model again and again with messages that differ in the bytes of their tensors only, and so do
the answers. What is the same is compared, and neither read nor written again.
"""

from core.request import InferenceRequest

class MessageReader:
    """Reads messages; a few of those before are kept, by their sizes."""

    def read(self, data: bytes) -> InferenceRequest | None: ...

class RepeatedMessage:
    """A message that was read, for one that has other bytes in its tensors."""

class RepeatedResponseMessage:
    """A message that was written, for a response that has tensors of the same names, types and shapes."""
