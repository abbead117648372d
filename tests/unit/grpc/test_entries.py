"""Entries of a message are counted on its bytes, before there are objects of them."""

import struct

import numpy as np
import pytest
import tritonclient.grpc.service_pb2 as theirs

from core.errors import CoreError, Kind
from frontends.grpc.protocol import messages as pb
from frontends.grpc.protocol.decode import MOST_ELEMENTS, MOST_ENTRIES, MOST_PARTS, decode

EMPTY_INPUT = b"\x2a\x00"
NESTED = b"\x22\x00"  # a parameter of an input


def refusal(message_class, data):
    with pytest.raises(CoreError) as error:
        decode(message_class, data)
    assert error.value.kind is Kind.INVALID
    return error.value.message


def sized(tag, content):
    """A field of a length; the tag has one byte."""
    size, prefix = len(content), bytes([tag])
    while size >= 128:
        prefix, size = prefix + bytes([size & 127 | 128]), size >> 7
    return prefix + bytes([size]) + content


@pytest.mark.parametrize(
    ("tag", "what"),
    [(0x22, "parameters"), (0x2A, "inputs"), (0x32, "outputs"), (0x3A, "raw_input_contents")],
)
def test_a_field_has_a_bound(tag, what):
    entry = bytes([tag, 0])

    assert decode(pb.ModelInferRequest, entry * MOST_ENTRIES) is not None
    assert refusal(pb.ModelInferRequest, entry * (MOST_ENTRIES + 1)) == (
        f"the request has more than {MOST_ENTRIES} {what}; {MOST_ENTRIES} are the most"
    )


@pytest.mark.parametrize(
    ("message_class", "entry"),
    [
        (pb.RepositoryModelLoadRequest, b"\x1a\x00"),
        (pb.RepositoryModelUnloadRequest, b"\x1a\x00"),
        (pb.LogSettingsRequest, b"\x0a\x00"),
        (pb.TraceSettingRequest, b"\x0a\x00"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_so_have_those_of_other_methods(message_class, entry):
    assert f"more than {MOST_ENTRIES}" in refusal(message_class, entry * 4 * MOST_ENTRIES)


def test_entries_within_entries_count_together():
    data = sized(0x2A, NESTED * 9_000) * 12

    assert f"more than {MOST_PARTS} parts" in refusal(pb.ModelInferRequest, data)


def test_values_of_a_setting_count():
    setting = sized(0x0A, b"\x0a\x01k" + sized(0x12, b"\x0a\x00" * (MOST_ENTRIES + 1)))

    assert f"more than {MOST_ENTRIES} value" in refusal(pb.TraceSettingRequest, setting)


def test_unknown_fields_count():
    assert f"more than {MOST_PARTS} parts" in refusal(
        pb.ServerLiveRequest, b"\x0a\x00" * (MOST_PARTS + 1)
    )


def test_fields_within_unknown_groups_count():
    group = b"\x0b" + b"\x08\x01" * (MOST_PARTS // 4) + b"\x0c"

    assert decode(pb.ServerLiveRequest, group * 3) is not None
    assert f"more than {MOST_PARTS} parts" in refusal(pb.ServerLiveRequest, group * 4)
    assert refusal(pb.ServerLiveRequest, b"\x0b" + b"\x08\x01" * (MOST_PARTS + 1) + b"\x0c")


@pytest.mark.parametrize("dims", [b"\x18\x01" * 10_001, sized(0x1A, b"\x01" * 10_001)])
def test_dimensions_count_packed_or_not(dims):
    assert "more than 10000 shape" in refusal(pb.ModelInferRequest, sized(0x2A, dims))


def test_a_million_numbers_in_contents_are_read():
    message = theirs.ModelInferRequest(model_name="m")
    entry = message.inputs.add(name="x", datatype="FP32", shape=[1_000_000])
    entry.contents.fp32_contents.extend(np.zeros(1_000_000, np.float32))

    found = decode(pb.ModelInferRequest, message.SerializeToString())

    assert len(found.inputs[0].contents.fp32_contents) == 1_000_000


@pytest.mark.parametrize(
    "contents",
    [
        sized(0x0A, b"\x01" * (MOST_ELEMENTS + 1)),
        sized(0x32, bytes(4 * (MOST_ELEMENTS + 1))),
        b"\x42\x00" * (MOST_ELEMENTS + 1),
    ],
    ids=["bool", "float", "bytes"],
)
def test_elements_that_protobuf_would_read_have_a_bound(contents):
    text = refusal(pb.ModelInferRequest, sized(0x2A, sized(0x2A, contents)))

    assert "elements" in text and "raw_input_contents" in text


def test_a_large_raw_tensor_is_one_entry():
    message = theirs.ModelInferRequest(model_name="m", raw_input_contents=[bytes(2**25)])

    assert len(decode(pb.ModelInferRequest, message.SerializeToString()).raw_input_contents) == 1


@pytest.mark.parametrize(
    "data", [b"\x2a\x05", b"\x00", b"\xff" * 11, b"\x0b", b"\x2a\x01\x0c", struct.pack("<I", 15)]
)
def test_bytes_that_are_no_message_are_refused(data):
    assert "is no inference.ModelInferRequest" in refusal(pb.ModelInferRequest, data)
