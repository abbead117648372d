from collections.abc import Iterable
from typing import Any

class MessageShape:
    """The fields of a message type and of its nested types. Thread-safe; one object serves all messages.

    descriptor      protobuf's descriptor of the type
    element_types   full names of message types whose fields are elements of tensors
    """

    def __init__(self, descriptor: Any, element_types: Iterable[str] = ()) -> None:
        """Raises ValueError for a field with a number of 32 or more."""
    def excess(
        self, data: bytes, most_each: int, most_parts: int, most_elements: int
    ) -> tuple[str, int] | None:
        """Return the exceeded limit of an encoded message as (name, limit); None if it is within all limits.

        most_each       entries of one repeated field; its name is the name of the field
        most_parts      messages, map entries, texts and unknown fields at all levels; its name is "parts"
        most_elements   elements of tensors; its name is "elements"
        Raises ValueError for bytes that are not a message; it does not check the encoding of texts.
        """
