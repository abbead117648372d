"""What somebody who misspelled a field or an enum value may have meant."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from core.config import proto


def field_hint(message: str, found: str) -> str:
    """The text for a field that a message does not have.

    message   full name, e.g. "inference.ModelInput"
    Names the nearest field of the message, else the messages that have a field of that name, else
    all fields of the message.
    """
    descriptor = proto.message_class(message).DESCRIPTOR
    names = [field.name for field in descriptor.fields]
    text = f"message {descriptor.name} has no field '{found}'"
    if nearest := _nearest(found, names):
        return f"{text}; did you mean '{nearest}'?"
    owners = [
        other.name
        for other in _messages(descriptor.file.message_types_by_name.values())
        if found in other.fields_by_name and not other.GetOptions().map_entry
    ]
    if owners:
        return f"{text}; it is a field of {' and '.join(dict.fromkeys(owners))}"
    return f"{text}; its fields are {', '.join(names)}"


def value_hint(enum: str, found: str) -> str:
    """The text for a value that an enum does not have.

    enum    full name, e.g. "inference.DataType"
    found   as the text has it, perhaps in quotes
    """
    descriptor = proto.enum_descriptor(enum)
    names = [value.name for value in descriptor.values]
    text = f"{descriptor.name} has no value {found}"
    # Most begin alike (TYPE_, KIND_), which would make any two of them look near.
    prefix = names[0].partition("_")[0] + "_"
    by_rest = {name.removeprefix(prefix): name for name in names}
    wanted = found.strip("\"'").upper().removeprefix(prefix)
    if nearest := _nearest(wanted, list(by_rest)):
        return f"{text}; did you mean {by_rest[nearest]}?"
    return f"{text}; its values are {', '.join(names)}"


def _nearest(found: str, names: list[str]) -> str:
    """The one of `names` that is most like `found`, "" if none is."""
    import difflib  # slow to import, and only a wrong configuration needs it

    by_folded = {name.lower(): name for name in names}
    close = difflib.get_close_matches(found.lower(), by_folded, n=1, cutoff=0.6)
    return by_folded[close[0]] if close else ""


def _messages(descriptors: Iterable[Any]) -> Iterator[Any]:
    for descriptor in descriptors:
        yield descriptor
        yield from _messages(descriptor.nested_types)
