from collections.abc import Iterable
from typing import Any

class MessageShape:
    """The fields of a protobuf message type and of its nested types, to count the entries of its messages.

    descriptor      protobuf's descriptor of the type
    element_types   full names of message types whose fields are elements of tensors
    Thread-safe; one object serves all messages.
    """

    def __init__(self, descriptor: Any, element_types: Iterable[str] = ()) -> None:
        """Raises ValueError if a field of the types has a number of 32 or more."""
    def excess(
        self, data: bytes, most_each: int, most_parts: int, most_elements: int
    ) -> tuple[str, int] | None:
        """Return the first limit that an encoded message exceeds, as (name, limit); None if it exceeds none.

        most_each       entries of one repeated field; the name is that of the field
        most_parts      messages, map entries, texts and unknown fields at all levels; the name is "parts"
        most_elements   elements of tensors; the name is "elements"
        Runs without the GIL. Raises ValueError for bytes that are not a message; does not check UTF-8.
        """
