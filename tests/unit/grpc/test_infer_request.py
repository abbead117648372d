"""Messages of inference without protobuf; protobuf, and the long way over it, are the oracle."""

import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core import dtypes
from frontends.grpc.native.infer_request import RequestReader
from frontends.grpc.protocol.messages import ModelInferRequest

CORPUS = Path(__file__).parents[2] / "fuzz/corpus/grpc_infer"
TYPED = {
    "bool_contents": (dtypes.BOOL,),
    "int_contents": (dtypes.INT8, dtypes.INT16, dtypes.INT32),
    "int64_contents": (dtypes.INT64,),
    "uint_contents": (dtypes.UINT8, dtypes.UINT16, dtypes.UINT32),
    "uint64_contents": (dtypes.UINT64,),
    "fp32_contents": (dtypes.FP32,),
    "fp64_contents": (dtypes.FP64,),
    "bytes_contents": (dtypes.BYTES,),
}
int64s = st.integers(-(2**63), 2**63 - 1)
uint64s = st.integers(0, 2**64 - 1)
ELEMENTS = {
    "bool_contents": st.booleans(),
    "int_contents": st.integers(-(2**31), 2**31 - 1),
    "int64_contents": int64s,
    "uint_contents": st.integers(0, 2**32 - 1),
    "uint64_contents": uint64s,
    "fp32_contents": st.floats(width=32),
    "fp64_contents": st.floats(),
    "bytes_contents": st.binary(max_size=9),
}
texts = st.text(max_size=6)


# Messages that ask for nothing unusual ------------------------------------------------------

PARAMETERS = {
    "sequence_start": {"bool_param": st.booleans()},
    "sequence_end": {"bool_param": st.booleans()},
    "priority": {"int64_param": st.integers(0, 2**63 - 1), "uint64_param": uint64s},
    "timeout": {"int64_param": int64s},
    "sequence_id": {"int64_param": int64s, "string_param": texts},
}
CUSTOM = {
    "bool_param": st.booleans(),
    "int64_param": int64s,
    "string_param": texts,
    "double_param": st.floats(),
}


@st.composite
def messages(draw):
    """Return a ModelInferRequest of a valid form."""
    version = draw(st.none() | st.integers(0, 10**18 - 1))
    message = ModelInferRequest(
        model_name=draw(texts),
        model_version="" if version is None else str(version),
        id=draw(texts),
    )
    for name in draw(st.lists(st.sampled_from(list(PARAMETERS)) | texts, max_size=4, unique=True)):
        kinds = PARAMETERS.get(name, CUSTOM)
        kind = draw(st.sampled_from(list(kinds)))
        setattr(message.parameters[name], kind, draw(kinds[kind]))
    typed = draw(st.booleans())
    for name in draw(st.lists(texts, max_size=4, unique=True)):
        entry = message.inputs.add(name=name, shape=draw(st.lists(int64s, max_size=5)))
        for other in draw(st.lists(texts, max_size=1)):
            entry.parameters[other].string_param = "of no use"
        if typed:
            field = draw(st.sampled_from(list(TYPED)))
            entry.datatype = draw(st.sampled_from(TYPED[field])).name
            entry.contents.SetInParent()
            getattr(entry.contents, field).extend(draw(st.lists(ELEMENTS[field], max_size=6)))
        else:
            entry.datatype = draw(st.sampled_from(dtypes.ALL)).name
            message.raw_input_contents.append(
                draw(st.binary(max_size=40) | st.just(b"") | st.just(bytes(range(200)) * 4))
            )
    for name in draw(st.lists(texts, max_size=3, unique=True)):
        output = message.outputs.add(name=name)
        if draw(st.booleans()):
            output.parameters["classification"].int64_param = draw(st.integers(1, 2**63 - 1))
    return message


# An encoder that uses every freedom of the wire ------------------------------------------------


class Encoder:
    """Encodes a message in one of many equivalent ways."""

    def __init__(self, random):
        self.random = random

    def encode(self, message):
        return b"".join(self._chunks(message))

    def _chunks(self, message):
        """The fields in any order; those of one field keep theirs."""
        queues = [self._field(field, value) for field, value in message.ListFields()]
        if message.DESCRIPTOR.name == "InferParameter":  # a oneof: its last field counts
            queues = [[*self._other_kind(), *(each for queue in queues for each in queue)]]
        queues.append([self._unknown() for _ in range(self._some(2))])
        chunks = []
        while queues := [queue for queue in queues if queue]:
            chunks.append(self.random.choice(queues).pop(0))
        return chunks

    def _field(self, field, value):
        number = field.number
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            return [
                self._sized(number, self._entry(name, value[name]))
                for name in value
                for _ in range(1 + self._some(1))
            ]
        repeated = hasattr(value, "extend")
        if repeated and field.message_type is not None:
            return [self._sized(number, self.encode(each)) for each in value]
        if repeated:
            return self._repeated(field, list(value))
        if field.message_type is not None:
            return self._pieces(number, value)
        earlier = [self._scalar(field, self._decoy(field))] if self._some(1) else []
        return [*earlier, self._scalar(field, value)]  # the last one counts

    def _entry(self, name, value):
        pieces = self._pieces(2, value)
        key = self._sized(1, name.encode())
        place = self._some(len(pieces))
        return b"".join((*pieces[:place], key, *pieces[place:]))

    def _pieces(self, number, message):
        """Return an embedded message, in one or several parts, which protobuf merges."""
        chunks = self._chunks(message)
        cut = self._some(len(chunks))
        pieces = (chunks[:cut], chunks[cut:]) if self._some(1) else (chunks,)
        return [self._sized(number, b"".join(piece)) for piece in pieces]

    def _repeated(self, field, values):
        """Packed, not packed, and both."""
        if field.type == field.TYPE_BYTES:
            return [self._sized(field.number, value) for value in values]
        chunks = []
        while values:
            count = 1 + self._some(len(values) - 1)
            some, values = values[:count], values[count:]
            if self._some(1):
                packed = b"".join(self._value(field, value) for value in some)
                chunks.append(self._sized(field.number, packed))
            else:
                chunks += [self._scalar(field, value) for value in some]
        if self._some(3) == 3:
            chunks.append(self._sized(field.number, b""))
        return chunks

    def _scalar(self, field, value):
        if field.type in (field.TYPE_STRING, field.TYPE_BYTES):
            return self._sized(field.number, value.encode() if isinstance(value, str) else value)
        wire_type = {field.TYPE_FLOAT: 5, field.TYPE_DOUBLE: 1}.get(field.type, 0)
        return self._varint(field.number << 3 | wire_type, 5) + self._value(field, value)

    def _value(self, field, value):
        if field.type == field.TYPE_FLOAT:
            return struct.pack("<f", value)
        if field.type == field.TYPE_DOUBLE:
            return struct.pack("<d", value)
        return self._varint(int(value) % 2**64, 10)

    def _decoy(self, field):
        if field.type == field.TYPE_STRING:
            return "decoy"
        return 1.5 if field.type == field.TYPE_DOUBLE else 1

    def _other_kind(self):
        other = self.random.choice((b"\x08\x01", b"\x10\x05", b"\x1a\x02no", b"\x28\x07"))
        return [other] if self._some(1) else []

    def _unknown(self):
        number = self.random.choice((9, 15, 16, 1000, 2**29 - 1))
        kind = self._some(4)
        if kind == 3:  # a group, with another one in it
            inner = b"\x0b\x50\x01\x0c"
            return (
                self._varint(number << 3 | 3, 5)
                + self._sized(1, b"x")
                + inner
                + self._varint(number << 3 | 4, 5)
            )
        wire_type = (0, 1, 2, 3, 5)[kind]
        content = {0: self._varint(7, 10), 1: bytes(8), 2: b"\x03abc", 5: bytes(4)}[wire_type]
        return self._varint(number << 3 | wire_type, 5) + content

    def _sized(self, number, content):
        return self._varint(number << 3 | 2, 5) + self._varint(len(content), 5) + content

    def _varint(self, number, longest):
        """At times longer than it must be."""
        groups = [number & 0x7F]
        while number := number >> 7:
            groups.append(number & 0x7F)
        if self._some(9) == 9:
            groups += [0] * self._some(longest - len(groups))
        return bytes([group | 0x80 for group in groups[:-1]] + groups[-1:])

    def _some(self, most):
        return self.random.randint(0, most)


@st.composite
def encoded_messages(draw):
    message = draw(messages())
    return Encoder(draw(st.randoms(use_true_random=False))).encode(message)


# Requests ----------------------------------------------------------------------------------

READER = RequestReader()  # the same for all, so that nothing of the last message may remain


@given(messages())
def test_a_request_equals_that_of_protobuf(long_way, assert_same_request, message):
    data = message.SerializeToString()

    assert_same_request(READER.read(data), long_way(data))


@given(encoded_messages())
def test_every_form_of_a_message_is_read(long_way, assert_same_request, data):
    assert_same_request(READER.read(data), long_way(data))


@given(encoded_messages(), st.data())
def test_a_damaged_message_is_read_like_protobuf(long_way, assert_same_request, data, draws):
    damaged = bytearray(data)
    for _ in range(draws.draw(st.integers(1, 3))):
        if damaged:
            position = draws.draw(st.integers(0, len(damaged) - 1))
            damaged[position] = draws.draw(st.integers(0, 255))
    damaged = bytes(damaged[: draws.draw(st.integers(0, len(damaged)))])

    found = READER.read(damaged)

    if found is not None:  # else protobuf reads it
        assert_same_request(found, long_way(damaged))


@pytest.mark.parametrize("path", sorted(CORPUS.iterdir()), ids=lambda path: path.name)
def test_inputs_of_the_fuzzer_are_read_like_protobuf(long_way, assert_same_request, path):
    data = path.read_bytes()

    found = READER.read(data)

    if found is not None:
        assert_same_request(found, long_way(data))


def request(**fields):
    message = ModelInferRequest(model_name="m", **fields)
    message.inputs.add(name="x", datatype="FP32", shape=[1])
    return message


def test_a_large_tensor_is_a_view_of_the_message():
    data = request(raw_input_contents=[bytes(4000)]).SerializeToString()

    assert READER.read(data).inputs["x"].raw.obj is data


def test_a_small_tensor_does_not_keep_the_message():
    data = request(raw_input_contents=[b"1234"]).SerializeToString()

    assert READER.read(data).inputs["x"].raw == b"1234"
    assert type(READER.read(data).inputs["x"].raw) is bytes


def test_a_repeated_name_is_the_same_object():
    data = request(raw_input_contents=[b"1234"]).SerializeToString()

    first, second = READER.read(data), READER.read(bytes(bytearray(data)))

    assert first.model_name is second.model_name
    assert first.inputs["x"].name is second.inputs["x"].name


@given(st.lists(st.text(max_size=20), max_size=200))
def test_names_are_not_mixed_up(names):
    for name in names * 2:
        assert (
            READER.read(ModelInferRequest(model_name=name).SerializeToString()).model_name == name
        )


@pytest.mark.parametrize(
    ("what", "data"),
    [
        ("a tag of six bytes", b"\x8a\x80\x80\x80\x80\x00\x00"),
        ("field 0", b"\x02\x00"),
        ("a number of eleven bytes", b"\x48" + b"\x80" * 10 + b"\x00"),
        ("a number of more than 64 bits", b"\x48" + b"\xff" * 9 + b"\x02"),
        ("a length of six bytes", b"\x0a\x81\x80\x80\x80\x80\x00a"),
        ("text that is no UTF-8", b"\x0a\x01\xff"),
        ("half of a surrogate pair", b"\x0a\x03\xed\xa0\x80"),
        ("an overlong character", b"\x0a\x02\xc0\x80"),
        ("a character beyond Unicode", b"\x0a\x04\xf4\x90\x80\x80"),
        ("a text that ends within a character", b"\x0a\x02\xe2\x98"),
        ("a group that does not end", b"\x4b\x50\x01"),
        ("a group that ends as another", b"\x4b\x54"),
        ("the end of no group", b"\x4c"),
        ("groups within groups", b"\x4b" * 200 + b"\x4c" * 200),
        ("a wire type that does not exist", b"\x4e\x00"),
        ("half a fixed number", b"\x49\x00\x00"),
        ("more than there is", b"\x0a\x05abc"),
        ("half a packed number", b"\x2a\x0b\x0a\x01x\x12\x04FP32\x1a\x01\x80"),
        ("half a packed float", b"\x2a\x0d\x0a\x01x\x12\x04FP32\x2a\x03\x32\x01\x00"),
        ("a version that is no plain number", b"\x12\x02+1"),
        ("a version with a zero before it", b"\x12\x0201"),
        ("a version of many digits", b"\x12\x13" + b"1" * 19),
        ("a parameter without a value", b"\x22\x03\x0a\x01a"),
    ],
)
def test_uncertain_messages_are_left_to_protobuf(what, data):
    assert READER.read(data) is None, what


def test_text_of_every_length_of_character_is_understood():
    name = "a\u00e9\u2603\U0001f600 \ud7ff\ue000\U0010ffff" * 3

    assert READER.read(ModelInferRequest(model_name=name).SerializeToString()).model_name == name


def test_the_codec_reads_bytes_like_protobuf():
    with pytest.raises(TypeError):
        READER.read(bytearray(b""))


class TestBounds:
    """A message above the limits of `parse` is left to it."""

    def test_inputs(self):
        raw = b"\x2a\x08\x12\x04FP32\x2a\x00"  # without a name: it would be there twice
        assert READER.read(raw * 10_001) is None

    def test_outputs(self):
        few, many = (
            b"".join(b"\x32\x06\x0a\x04%04d" % number for number in range(count))
            for count in (10_000, 10_001)
        )

        assert len(READER.read(few).outputs) == 10_000
        assert READER.read(many + b"\x32\x03\x0a\x01x") is None

    def test_parameters(self):
        entry = b"\x22\x07\x0a\x01a\x12\x02\x08\x01"

        assert READER.read(entry * 10_000).parameters == {"a": True}
        assert READER.read(entry * 10_001) is None

    def test_dimensions(self):
        message = request(raw_input_contents=[b""])
        message.inputs[0].shape[:] = [1] * 100

        assert READER.read(message.SerializeToString()).inputs["x"].shape == (1,) * 100
        message.inputs[0].shape.append(1)
        assert READER.read(message.SerializeToString()) is None

    def test_pieces_of_typed_contents(self):
        piece = b"\x2a\x06\x32\x04\x00\x00\x80\x3f"
        contents = piece * 20_000
        head = b"\x0a\x01x\x12\x04FP32"

        found = READER.read(Encoder(_Plain())._sized(5, head + contents))

        assert len(found.inputs["x"].raw) == 80_000
        assert READER.read(Encoder(_Plain())._sized(5, head + contents + piece)) is None


class _Plain:
    """Replaces a random source: only required parts."""

    def randint(self, least, most):
        return 0


@pytest.mark.parametrize(
    "fields",
    [b"\x12\x00", b"\x0b\x0c", b"\x0b" + b"\x08\x01" * 9 + b"\x0c", b"\x2a\x02\x0a\x00"],
    ids=["versions", "empty groups", "groups", "names of inputs"],
)
def test_a_message_of_very_many_fields_is_left_to_protobuf(fields):
    assert READER.read(b"\x0a\x01m" + fields * 100_001) is None


def test_a_message_of_many_fields_is_read():
    assert READER.read(b"\x0a\x01m" + b"\x12\x00" * 90_000).model_name == "m"
