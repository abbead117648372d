"""Raw contents are cut out of a request; the protobuf runtime is the oracle."""

import pytest
import tritonclient.grpc.service_pb2 as pb
from google.protobuf.message import DecodeError
from hypothesis import given
from hypothesis import strategies as st

from core.errors import CoreError
from frontends.grpc.protocol import raw_contents
from frontends.grpc.protocol.parse import read
from frontends.grpc.protocol.raw_contents import separate


def same(ours, raws, theirs):
    """Whether what was read is what the oracle reads."""
    whole = pb.ModelInferRequest.FromString(ours.SerializeToString())
    if not whole.raw_input_contents:
        whole.raw_input_contents.extend(bytes(raw) for raw in raws)
    return whole == theirs


@st.composite
def requests(draw):
    text = st.text(max_size=5)
    message = pb.ModelInferRequest(model_name=draw(text), id=draw(text))
    for name in draw(st.lists(text, max_size=3)):
        message.inputs.add(name=name, datatype="FP32", shape=draw(st.lists(st.integers(0, 9))))
    for name in draw(st.lists(text, max_size=2)):
        message.parameters[name].string_param = draw(text)
    message.raw_input_contents.extend(draw(st.lists(st.binary(max_size=300), max_size=4)))
    return message


@given(requests())
def test_a_request_is_read_as_the_runtime_reads_it(message):
    data = message.SerializeToString()

    assert same(*read(data), message)


@given(st.lists(requests(), max_size=3))
def test_fields_may_come_in_any_order(messages):
    # Encoded messages one after another are one message: fields merge, lists grow.
    data = b"".join(message.SerializeToString() for message in messages)

    assert same(*read(data), pb.ModelInferRequest.FromString(data))


@given(requests(), st.data())
def test_damaged_requests_are_refused_or_read_as_the_runtime_reads_them(message, data):
    damaged = bytearray(message.SerializeToString())
    for _ in range(data.draw(st.integers(1, 3))):
        if damaged:
            position = data.draw(st.integers(0, len(damaged) - 1))
            damaged[position] = data.draw(st.integers(0, 255))
    damaged = bytes(damaged[: data.draw(st.integers(0, len(damaged)))])

    try:
        theirs = pb.ModelInferRequest.FromString(damaged)
    except DecodeError:
        with pytest.raises(CoreError):
            read(damaged)
    else:
        assert same(*read(damaged), theirs)


def test_raw_contents_are_views_of_the_message():
    data = pb.ModelInferRequest(model_name="m", raw_input_contents=[b"abc"]).SerializeToString()

    rest, views = separate(data)

    assert rest == pb.ModelInferRequest(model_name="m").SerializeToString()
    assert [view.obj is data for view in views] == [True]


@pytest.mark.parametrize("size", [0, 127, 128, 16_383, 16_384, 2**21, 2**21 - 1])
def test_lengths_of_every_width_are_understood(size):
    message = pb.ModelInferRequest(raw_input_contents=[b"x" * size, b"y"])

    _, views = separate(message.SerializeToString())

    assert [len(view) for view in views] == [size, 1]


@pytest.mark.parametrize(
    "data",
    [
        b"\x3a",  # no length
        b"\x3a\xff\xff\xff\xff\xff\xff\x01",  # a length of more than five bytes
        b"\x3a\x05ab",  # shorter than its length
        b"\x38\x01",  # a number where bytes belong
        b"\x42\x01a",  # field 8, which does not exist
        b"\x00\x01a",  # field 0, which cannot exist
        b"\xba\x01\x00",  # a tag of two bytes
    ],
)
def test_what_is_not_certain_is_left_to_the_runtime(data):
    assert separate(data) is None


def test_a_request_of_very_many_fields_is_left_to_the_runtime():
    few = pb.ModelInferRequest(raw_input_contents=[b""] * (raw_contents.MOST_FIELDS - 1))
    many = pb.ModelInferRequest(raw_input_contents=[b""] * raw_contents.MOST_FIELDS)

    assert separate(few.SerializeToString()) is not None
    assert separate(many.SerializeToString()) is None
    assert len(read(many.SerializeToString())[1]) == raw_contents.MOST_FIELDS
