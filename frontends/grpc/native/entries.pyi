from collections.abc import Iterable
from typing import Any

class MessageShape:
    """The fields of a message and of those within it. Any thread; made once for each message.

    descriptor      protobuf's, of the message
    element_types   full names of messages whose fields are elements of tensors
    """

    def __init__(self, descriptor: Any, element_types: Iterable[str] = ()) -> None:
        """Raises ValueError for a field with a number of 32 or more."""
    def excess(
        self, data: bytes, most_each: int, most_parts: int, most_elements: int
    ) -> tuple[str, int] | None:
        """What an encoded message has too much of, and its bound; None if it is within the bounds.

        most_each       entries of one repeated field: the answer is the name of the field
        most_parts      messages, map entries, texts and unknown fields, at all levels: "parts"
        most_elements   elements of tensors: "elements"
        Raises ValueError for bytes that are no message, as far as that is seen without reading texts.
        """
