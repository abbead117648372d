"""Reads live settings from JSON. Each error names the field, what was found and what is expected.

The settings have the names and the types of the model configuration; only the fields of LIVE can change while
a model serves. `null` stands for the value of the configuration file.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from google.protobuf.descriptor import FieldDescriptor

from core.config import ModelConfig
from core.errors import CoreError, invalid
from core.similar import did_you_mean

Live = Mapping[str, "Live | None"]
"""Names of the fields that can change; None: the field, with all that it contains."""

LIVE: Live = {
    "dynamic_batching": {
        "preferred_batch_size": None,
        "max_queue_delay_microseconds": None,
        "preserve_ordering": None,
        "priority_levels": None,
        "default_priority_level": None,
        "default_queue_policy": None,
        "priority_queue_policy": None,
    },
    "sequence_batching": {
        "max_sequence_idle_microseconds": None,
        "direct": {"max_queue_delay_microseconds": None, "minimum_slot_utilization": None},
        "oldest": {"max_queue_delay_microseconds": None, "preferred_batch_size": None},
    },
    "response_cache": {"enable": None},
}
LIMITER = "rate_limiter"
"""Name of an instance group → its rate_limiter. The configuration has it inside of `instance_group`."""

MOST_US = 10**15  # 31 years: a time that is added to it fits into 64 bits
_MOST_LEVELS = 1000
_MOST_ITEMS = 64  # of a list
_MOST_TEXT = 256  # characters
_MOST_SHOWN = 60  # characters of a value in an error
_RANGES = {
    FieldDescriptor.CPPTYPE_INT32: (-(2**31), 2**31 - 1),
    FieldDescriptor.CPPTYPE_INT64: (-(2**63), 2**63 - 1),
    FieldDescriptor.CPPTYPE_UINT32: (0, 2**32 - 1),
    FieldDescriptor.CPPTYPE_UINT64: (0, 2**63 - 1),
}


class Reader:
    """Reads the settings of one model. root: what errors begin with."""

    def __init__(self, root: str):
        self._root = root

    def read(self, value: Any) -> dict[str, Any]:
        """Return settings in their normal form. Raises CoreError(INVALID) for the first that is wrong."""
        limiters = value.get(LIMITER) if isinstance(value, Mapping) else None
        known = {**LIVE, LIMITER: None}
        rest = value if limiters is None else {n: v for n, v in value.items() if n != LIMITER}
        found = self._message("", rest, ModelConfig.DESCRIPTOR, known)
        if limiters is not None:
            found[LIMITER] = self._limiters(limiters)
        return found

    def _limiters(self, value: Any) -> dict[str, Any]:
        if not isinstance(value, Mapping):
            text = 'an object such as {"<instance group>": {"priority": 2}}'
            raise self._wrong(LIMITER, value, text)
        descriptor: Any = ModelConfig.DESCRIPTOR
        for name in ("instance_group", "rate_limiter"):
            descriptor = descriptor.fields_by_name[name].message_type
        return {
            name: None if each is None else self._message(f"{LIMITER}.{name}", each, descriptor)
            for name, each in value.items()
        }

    def _message(
        self, path: str, value: Any, descriptor: Any, live: Live | None = None, whole: bool = False
    ) -> dict[str, Any]:
        """Return the fields of an object. `whole`: it replaces another one, so that no field may be null."""
        known = list(live or descriptor.fields_by_name)
        if not isinstance(value, Mapping):
            raise self._wrong(path, value, f"an object with {', '.join(known)}")
        found: dict[str, Any] = {}
        for name, each in value.items():
            place = f"{path}.{name}" if path else str(name)
            if name not in known:
                raise self._unknown(path, str(name), known, descriptor)
            below = live[name] if live else None
            if each is None and not whole:
                found[name] = None
            else:
                found[name] = self._field(place, each, descriptor.fields_by_name.get(name), below)
        return found

    def _field(self, path: str, value: Any, field: Any, live: Live | None) -> Any:
        kind = field.message_type
        if kind is not None and kind.GetOptions().map_entry:
            return self._levels(path, value, kind.fields_by_name["value"].message_type)
        if _is_repeated(field):
            if not isinstance(value, list) or len(value) > _MOST_ITEMS:
                raise self._wrong(path, value, f"a list of at most {_MOST_ITEMS}")
            return [self._one(f"{path}[{i}]", each, field) for i, each in enumerate(value)]
        if kind is not None:
            return self._message(path, value, kind, live)
        return self._one(path, value, field)

    def _levels(self, path: str, value: Any, descriptor: Any) -> dict[str, Any]:
        """Return an object with a key for each priority level."""
        if not isinstance(value, Mapping):
            raise self._wrong(path, value, 'an object such as {"1": {"max_queue_size": 10}}')
        found = {}
        for key, each in value.items():
            if (number := _level(key)) is None:
                expected = f"has the key {_shown(key)}, expected a level from 1 to {_MOST_LEVELS}"
                raise invalid(f"{self._root}: {path} {expected}")
            place = f"{path}.{number}"
            found[str(number)] = None if each is None else self._message(place, each, descriptor)
        return found

    def _one(self, path: str, value: Any, field: Any) -> Any:
        if field.message_type is not None:
            return self._message(path, value, field.message_type, whole=True)
        if field.enum_type is not None:
            names = [each.name for each in field.enum_type.values]
            if not isinstance(value, str) or value.upper() not in names:
                raise self._wrong(path, value, " or ".join(f'"{name}"' for name in names))
            return value.upper()
        if field.cpp_type in _RANGES:
            return self._whole(path, value, field)
        if field.cpp_type == FieldDescriptor.CPPTYPE_BOOL:
            if type(value) is not bool:
                raise self._wrong(path, value, "true or false")
            return value
        if field.cpp_type == FieldDescriptor.CPPTYPE_STRING:
            if not isinstance(value, str) or not 1 <= len(value) <= _MOST_TEXT:
                raise self._wrong(path, value, f"a text of 1 to {_MOST_TEXT} characters")
            return value
        if type(value) not in (int, float) or not math.isfinite(value):
            raise self._wrong(path, value, "a number")
        return value

    def _whole(self, path: str, value: Any, field: Any) -> int:
        least, most = _RANGES[field.cpp_type]
        unit = ""
        if field.name.endswith("_microseconds"):
            most, unit = MOST_US, " microseconds"
        elif field.name == "priority_levels":
            most = _MOST_LEVELS
        if field.name == "max_sequence_idle_microseconds":
            least = 1
        if type(value) is not int or not least <= value <= most:
            raise self._wrong(path, value, f"a whole number from {least} to {most}{unit}")
        return value

    def _wrong(self, path: str, value: Any, expected: str) -> CoreError:
        named = f": {path}" if path else ""
        return invalid(f"{self._root}{named} is {_shown(value)}, expected {expected}")

    def _unknown(self, path: str, name: str, known: list[str], descriptor: Any) -> CoreError:
        if name in descriptor.fields_by_name:
            where = f"{path}.{name}" if path else name
            return invalid(
                f"{self._root}: {where} cannot change while the model serves: change the configuration, and "
                f"load the model again. Live are: {', '.join(known)}"
            )
        named = f": {path}" if path else ""
        near = did_you_mean(name, known)
        return invalid(
            f"{self._root}{named} has no field {_shown(name)}{near}; its fields: {', '.join(known)}"
        )


def _level(key: Any) -> int | None:
    """Return the priority level that a key names; None for another key."""
    # Python refuses to convert thousands of digits.
    text = str(key) if type(key) is int else key
    if not isinstance(text, str) or len(text) > len(str(_MOST_LEVELS)):
        return None
    number = int(text) if text.isascii() and text.isdigit() else 0
    return number if 1 <= number <= _MOST_LEVELS else None


def _is_repeated(field: Any) -> bool:
    # Newer versions of protobuf have no `label`, older ones have no `is_repeated`.
    found = getattr(field, "is_repeated", None)
    return bool(field.label == FieldDescriptor.LABEL_REPEATED) if found is None else bool(found)


def _shown(value: Any) -> str:
    """Return a value as short JSON text."""
    text = json.dumps(value, ensure_ascii=False, default=repr)
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}…"
