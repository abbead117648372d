"""Suggest the field or enum value nearest to a misspelled one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from core.config import proto
from core.similar import did_you_mean, nearest


def field_hint(message: str, found: str) -> str:
    """Return the error text for a field that a message does not have.

    message   full name, e.g. "inference.ModelInput"
    The text names the nearest field of the message; without one, the messages that have a field of that
    name; without these, all fields of the message.
    """
    descriptor = proto.message_class(message).DESCRIPTOR
    names = [field.name for field in descriptor.fields]
    text = f"message {descriptor.name} has no field '{found}'"
    if hint := did_you_mean(found, names):
        return text + hint
    owners = [
        other.name
        for other in _messages(descriptor.file.message_types_by_name.values())
        if found in other.fields_by_name and not other.GetOptions().map_entry
    ]
    if owners:
        return f"{text}; it is a field of {' and '.join(dict.fromkeys(owners))}"
    return f"{text}; its fields are {', '.join(names)}"


def value_hint(enum: str, found: str) -> str:
    """Return the error text for a value that an enum does not have: with the nearest value, else with all.

    enum    full name, e.g. "inference.DataType"
    found   the value as written in the configuration, with or without quotes
    """
    descriptor = proto.enum_descriptor(enum)
    names = [value.name for value in descriptor.values]
    text = f"{descriptor.name} has no value {found}"
    # Compare without the common prefix (TYPE_, KIND_), which makes all values look similar.
    prefix = names[0].partition("_")[0] + "_"
    by_rest = {name.removeprefix(prefix): name for name in names}
    wanted = found.strip("\"'").upper().removeprefix(prefix)
    if rest := nearest(wanted, by_rest):
        return f"{text}; did you mean {by_rest[rest]}?"
    return f"{text}; its values are {', '.join(names)}"


def _messages(descriptors: Iterable[Any]) -> Iterator[Any]:
    for descriptor in descriptors:
        yield descriptor
        yield from _messages(descriptor.nested_types)
