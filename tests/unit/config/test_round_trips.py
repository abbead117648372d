"""Random configurations through both forms, against protobuf's own printers and parsers."""

import json

import pytest
from google.protobuf import json_format, text_format
from google.protobuf.descriptor import FieldDescriptor
from hypothesis import given, settings
from hypothesis import strategies as st

from core.config import ModelConfig, parse_json, parse_text, to_json

F = FieldDescriptor
WIDE = (F.CPPTYPE_INT64, F.CPPTYPE_UINT64)
SCALARS = {
    F.CPPTYPE_INT32: st.integers(-(2**31), 2**31 - 1),
    F.CPPTYPE_UINT32: st.integers(0, 2**32 - 1),
    F.CPPTYPE_INT64: st.integers(-(2**63), 2**63 - 1),
    F.CPPTYPE_UINT64: st.integers(0, 2**64 - 1),
    F.CPPTYPE_BOOL: st.booleans(),
    # protobuf writes more digits of the smallest numbers than they have
    F.CPPTYPE_FLOAT: st.floats(width=32, allow_nan=False, allow_subnormal=False),
    F.CPPTYPE_DOUBLE: st.floats(allow_nan=False),
    F.CPPTYPE_STRING: st.text(max_size=5),
}


def scalar(draw, field):
    if field.enum_type is not None:
        return draw(st.sampled_from([value.number for value in field.enum_type.values]))
    return draw(SCALARS[field.cpp_type])


def populate(draw, message, wide):
    """Set some of the message's fields to something."""
    for field in message.DESCRIPTOR.fields:
        if (not wide and field.cpp_type in WIDE) or not draw(st.booleans()):
            continue
        target = getattr(message, field.name)
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            populate_map(draw, target, field.message_type.fields_by_name, wide)
        elif hasattr(target, "add"):
            for _ in range(draw(st.integers(0, 2))):
                populate(draw, target.add(), wide)
        elif hasattr(target, "extend"):
            target.extend(scalar(draw, field) for _ in range(draw(st.integers(0, 2))))
        elif field.message_type is not None:
            target.SetInParent()
            populate(draw, target, wide)
        else:
            setattr(message, field.name, scalar(draw, field))


def populate_map(draw, target, entry, wide):
    if not wide and entry["key"].cpp_type in WIDE:
        return
    for _ in range(draw(st.integers(0, 2))):
        key = scalar(draw, entry["key"])
        if entry["value"].message_type is None:
            target[key] = scalar(draw, entry["value"])
        else:
            populate(draw, target[key], wide)


@st.composite
def configs(draw, wide=True):
    """A ModelConfig; without 64-bit integers if not `wide`."""
    config = ModelConfig()
    populate(draw, config, wide)
    return config


@given(configs())
@settings(max_examples=60)
def test_printed_text_is_read_back(config):
    assert parse_text(text_format.MessageToString(config), "test") == config


@given(configs())
@settings(max_examples=60)
def test_json_is_read_back_by_us_and_by_protobuf(config):
    text = json.dumps(to_json(config))

    assert parse_json(text, "test") == config
    assert json_format.Parse(text, ModelConfig()) == config


@given(configs(wide=False))
@settings(max_examples=60)
def test_json_is_that_of_protobuf_but_for_integers_of_64_bits(config):
    expected = json_format.MessageToDict(
        config, preserving_proto_field_name=True, always_print_fields_with_no_presence=True
    )

    assert without_wide(to_json(config), ModelConfig.DESCRIPTOR) == without_wide(
        expected, ModelConfig.DESCRIPTOR
    )


def without_wide(value, descriptor):
    """The object without members that have 64-bit integers (protobuf writes them as strings)."""
    if isinstance(value, list):
        return [without_wide(each, descriptor) for each in value]
    if not isinstance(value, dict):
        return value
    found = {}
    for name, member in value.items():
        field = descriptor.fields_by_name.get(name)
        if descriptor.GetOptions().map_entry:  # the names are keys
            found[name] = without_wide(member, descriptor.fields_by_name["value"].message_type)
        elif field.cpp_type not in WIDE:
            found[name] = without_wide(member, field.message_type)
    return found


@pytest.mark.parametrize("text", ["name: 'a'", "input { dims: [1, 2] }", "dynamic_batching {}"])
def test_equal_configurations_have_equal_json(text):
    assert to_json(parse_text(text, "a")) == to_json(parse_text(text + " ", "b"))
