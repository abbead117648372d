"""ModelConfig ◄─► JSON, in the form of the model configuration extension and of load requests.

Fields have their names of the .proto, enums are names, 64-bit integers are numbers (protobuf writes
strings). A field without presence is printed with its default value.
"""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
from google.protobuf import json_format
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from core.config.messages import ModelConfig
from core.config.suggestion import field_hint, value_hint
from core.errors import CoreError, invalid

# The C and the Python implementation of protobuf have no type in common.
MessageDescriptor = Any
Field = Any


MOST_JSON_BYTES = 1024 * 1024  # of a configuration in JSON
_MOST_SIGNS = 100_000  # opening brackets, opening braces and commas in it; they bound the values


def config_too_large(origin: str, size: int) -> CoreError:
    """Return the error for JSON of more than MOST_JSON_BYTES."""
    return invalid(f"{origin} has {size} bytes; {MOST_JSON_BYTES} are the most of a configuration")


def parse_json(text: str, origin: str) -> ModelConfig:
    """Parse JSON into a ModelConfig; absent fields have their defaults.

    origin   how errors name the text
    Field names are those of the .proto or in camel case. Enum values are names in any case, or numbers.
    Raises CoreError(INVALID) if the JSON is invalid or too large, has an unknown field or name of an enum, or
    a value of the wrong type.
    """
    config = ModelConfig()
    size = len(text.encode(errors="surrogatepass"))
    if size > MOST_JSON_BYTES:
        raise config_too_large(origin, size)
    # Count before parsing: this bounds the time that json.loads takes and the objects that it makes.
    signs = sum(map(text.count, "[{,"))
    if signs > _MOST_SIGNS:
        raise invalid(
            f"{origin} has {signs} opening brackets, opening braces and commas; {_MOST_SIGNS} are the most "
            "of a configuration"
        )
    try:
        value = json.loads(text, object_pairs_hook=_once)
        if not isinstance(value, dict):
            raise ValueError(f"expected a JSON object, got {type(value).__name__}")
        json_format.ParseDict(_known(value, config.DESCRIPTOR, ""), config)
    except RecursionError:
        raise invalid(f"failed to read JSON of {origin}: nested too deeply") from None
    except (ValueError, json_format.ParseError) as error:
        raise invalid(f"failed to read JSON of {origin}: {error}") from None
    return config


def to_json(config: ModelConfig) -> dict[str, Any]:
    """Return a configuration as a JSON object; fields as in the .proto, scalars of a oneof after them."""
    return _object(config)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"'{twice}' is given twice in one object")
    return found


def _known(value: Any, message: MessageDescriptor, path: str) -> Any:
    """Return a copy of `value`, the JSON of a message, with enum names as in the .proto.

    path   where `value` is, for errors; "" at the top
    Raises ValueError for an unknown field or enum name, and for a text field or an enum of a wrong type.
    """
    if not isinstance(value, dict):
        return value  # ParseDict refuses most other types by name
    fields: dict[str, Field] = {}
    for field in message.fields:
        fields[field.name] = fields[field.json_name] = field
    found = {}
    for name, member in value.items():
        if (known := fields.get(name)) is None:
            raise ValueError(f"{path or 'config'}: {field_hint(message.full_name, name)}")
        found[name] = _known_member(member, known, f"{path}.{name}" if path else name)
    return found


def _known_member(value: Any, field: Field, path: str) -> Any:
    if _is_map(field) and isinstance(value, dict):
        entry = field.message_type.fields_by_name["value"]
        return {key: _known_one(each, entry, f"{path}['{key}']") for key, each in value.items()}
    if _is_repeated(field) and isinstance(value, list):
        return [_known_one(each, field, f"{path}[{i}]") for i, each in enumerate(value)]
    return _known_one(value, field, path)


def _known_one(value: Any, field: Field, path: str) -> Any:
    if field.message_type is not None:
        return _known(value, field.message_type, path)
    if value is None:
        return value  # ParseDict refuses it where it does not mean the default
    if field.enum_type is not None:
        return _enum_value(value, field.enum_type, path)
    if field.cpp_type == FieldDescriptor.CPPTYPE_STRING and not isinstance(value, str):
        raise ValueError(f"{path}: expected a string, got {json.dumps(value)}")
    return value


def _enum_value(value: Any, enum: Any, path: str) -> int | str:
    """Return a name as the .proto spells it, or an integer. Raises ValueError for others: 1.5, true."""
    if isinstance(value, str):
        names: dict[str, str] = {each.name.lower(): each.name for each in enum.values}
        known = names.get(value.lower().replace("-", "_"))
        if known is None:
            raise ValueError(f"{path}: {value_hint(enum.full_name, repr(value))}")
        return known
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise ValueError(f"{path}: expected a name or a number of {enum.name}, got {json.dumps(value)}")


def _object(message: Message) -> dict[str, Any]:
    found: dict[str, Any] = {}
    chosen: dict[str, Any] = {}  # scalar members of a oneof: Triton prints them last
    for field in message.DESCRIPTOR.fields:
        if not field.has_presence:
            found[field.name] = _member(getattr(message, field.name), field)
        elif message.HasField(field.name):
            target = chosen if field.message_type is None else found
            target[field.name] = _value(getattr(message, field.name), field)
    return found | chosen


def _member(value: Any, field: Field) -> Any:
    if _is_map(field):
        entry = field.message_type.fields_by_name["value"]
        return {str(key): _value(value[key], entry) for key in sorted(value)}
    if _is_repeated(field):
        return [_value(each, field) for each in value]
    return _value(value, field)


def _value(value: Any, field: Field) -> Any:
    if field.message_type is not None:
        return _object(value)
    if field.enum_type is not None:
        known = field.enum_type.values_by_number.get(value)
        return value if known is None else known.name
    if isinstance(value, float):
        return _number(value, single=field.cpp_type == FieldDescriptor.CPPTYPE_FLOAT)
    return value


def _number(value: float, single: bool) -> int | float | str:
    """Return the shortest number that parses to the same float; text for infinities and NaN."""
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else f"{'-' if value < 0 else ''}Infinity"
    shortest = float(str(np.float32(value))) if single else value
    whole = shortest.is_integer() and abs(shortest) < 2**53 and repr(shortest) != "-0.0"
    return int(shortest) if whole else shortest


def _is_repeated(field: Field) -> bool:
    # Newer versions of protobuf have no `label`, older ones have no `is_repeated`.
    found = getattr(field, "is_repeated", None)
    return bool(field.label == FieldDescriptor.LABEL_REPEATED) if found is None else bool(found)


def _is_map(field: Field) -> bool:
    return field.message_type is not None and bool(field.message_type.GetOptions().map_entry)
