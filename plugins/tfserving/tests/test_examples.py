"""Examples as the server reads them: one by one, or as a table if they differ in their floats only."""

import asyncio
from types import SimpleNamespace

import numpy as np
import pytest
from frontend_tfserving.rpc import aligned, messages, uniform
from frontend_tfserving.rpc import examples as reading
from hypothesis import given, settings
from hypothesis import strategies as st

from core import dtypes
from core.errors import CoreError

from .protos import features

FLOATS = st.floats(width=32)
LISTS = st.one_of(
    st.lists(FLOATS, min_size=1, max_size=3),
    st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=3),
    st.lists(st.binary(max_size=3), min_size=1, max_size=3),
)
INPUTS = st.tuples(
    st.sampled_from([dtypes.FP32, dtypes.FP64, dtypes.FP16, dtypes.INT8, dtypes.BYTES]),
    st.sampled_from([(1,), (2,), (-1,), (2, -1)]),
)
NAMES = ["a", "b", "größe"]


def signature_of(**inputs):
    """inputs   name → (datatype, dims)"""
    specs = {
        name: SimpleNamespace(name=name, dtype=dtype, dims=dims)
        for name, (dtype, dims) in inputs.items()
    }
    return SimpleNamespace(name="m", inputs=specs, max_batch_size=8)


def read(encoded, signature):
    """Return the inputs as datatype, shape and values; or the text of the error."""
    request = messages.EncodedInput(example_list=messages.EncodedExampleList(examples=encoded))
    try:
        found = reading.inputs_of(request, signature)
    except CoreError as error:
        return str(error)
    return {
        name: (each.dtype, each.shape, repr(each.array.tolist())) for name, each in found.items()
    }


@st.composite
def batches(draw):
    """Encoded examples: of the same numbers of floats, often, or of anything."""
    if draw(st.booleans()):
        widths = draw(st.dictionaries(st.sampled_from(NAMES), st.integers(1, 3), min_size=1))
        lists = {
            name: st.lists(FLOATS, min_size=size, max_size=size) for name, size in widths.items()
        }
        rows = draw(st.lists(st.fixed_dictionaries(lists), min_size=1, max_size=4))
    else:
        rows = draw(
            st.lists(st.dictionaries(st.sampled_from(NAMES), LISTS), min_size=1, max_size=4)
        )
    return [features(**row).SerializeToString() for row in rows]


@settings(max_examples=300)
@given(batches(), st.dictionaries(st.sampled_from(NAMES), INPUTS, min_size=1))
def test_a_table_of_examples_is_read_as_each_of_them(encoded, inputs):
    signature = signature_of(**inputs)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(aligned, "FEWEST", 1)
        found = read(encoded, signature)
        patch.setattr(reading, "_columns", lambda *given: None)
        expected = read(encoded, signature)
    # With several wrong features, the error names one of them.
    assert type(found) is type(expected)
    assert isinstance(found, str) or found == expected


GOOD = [
    features(a=[1.0, 2.0], b=[3.0]).SerializeToString(),
    features(a=[1, 300], b=[b"text", b""], c=[0.5]).SerializeToString(),
]


@settings(max_examples=300)
@given(st.sampled_from(GOOD), st.lists(st.tuples(st.integers(0, 99), st.integers(0, 255))))
def test_changed_bytes_are_read_as_protobuf_reads_them(good, changes):
    content = bytearray(good)
    for place, value in changes:
        content[place % len(content)] = value
    sent = [good, bytes(content)]
    floats = uniform.columns_of(sent) or {}
    found = {name: ("float_list", values) for name, values in floats.items()}

    for columns in (found, aligned.columns_of(sent) or {}):
        for row, each in enumerate(sent if columns else []):
            plain = messages.Example.FromString(each).features.feature
            assert plain.keys() == columns.keys()
            for name, (kind, values) in columns.items():
                expected = np.array(getattr(plain[name], kind).value, values.dtype)
                np.testing.assert_array_equal(values[row], expected)


def test_equal_lists_of_floats_are_a_table():
    encoded = [features(a=[row, 2.0], b=[-row]).SerializeToString() for row in (1.0, 5.0, 7.0)]

    found = uniform.columns_of(encoded)

    assert {name: values.tolist() for name, values in found.items()} == {
        "a": [[1, 2], [5, 2], [7, 2]],
        "b": [[-1], [-5], [-7]],
    }
    assert {values.dtype for values in found.values()} == {np.dtype(np.float32)}


@pytest.mark.parametrize(
    "rows",
    [
        [{}],
        [{"a": [1]}],
        [{"a": [b"a"]}],
        [{"a": [1.0]}, {"a": [1.0, 2.0]}],
        [{"a": [1.0]}, {"b": [1.0]}],
        [{"a": [1.0], "b": [1]}, {"a": [1.0], "b": [1]}],
    ],
)
def test_other_examples_do_not_differ_in_their_floats_only(rows):
    assert uniform.columns_of([features(**row).SerializeToString() for row in rows]) is None


@pytest.mark.parametrize("row", [{"a": [1.0], "b": [2.0]}, {"a": [1], "b": [b"text"]}])
def test_examples_with_another_feature_than_those_known_are_no_table(row):
    encoded = [features(**row).SerializeToString()] * 2

    for module in (uniform, aligned):
        assert module.columns_of(encoded, {"a"}) is None
    found = [module.columns_of(encoded, {"a", "b"}) for module in (uniform, aligned)]
    assert any(each is not None and each.keys() == {"a", "b"} for each in found)


def test_examples_are_read_once_for_each_signature(monkeypatch):
    whole, signatures = reading.inputs_of, []

    def counted(given, signature):
        signatures.append(signature)
        return whole(given, signature)

    monkeypatch.setattr(reading, "inputs_of", counted)
    encoded = messages.EncodedExampleList(examples=[features(a=[1.0]).SerializeToString()])
    found = reading.Examples(messages.EncodedInput(example_list=encoded), 1, tasks=3)
    one, other = signature_of(a=(dtypes.FP32, (1,))), signature_of(a=(dtypes.FP64, (1,)))

    for signature in (one, other, one):
        array = asyncio.run(found.inputs_of(signature))["a"].array
        assert array.tolist() == [[1]]
        array += 1  # as a model may do, which no other task notices

    assert signatures == [one, other]


def test_an_unknown_feature_among_floats_is_named_with_the_inputs():
    encoded = [features(a=[1.0], b=[2.0]).SerializeToString()]

    assert "model 'm' has no input 'b'; it has a" in read(
        encoded, signature_of(a=(dtypes.FP32, (1,)))
    )


def test_a_few_examples_of_very_many_features_are_no_table():
    """Unless they are inputs of the model: protobuf joins the examples of a model that parses them faster."""
    names = [f"feature {number}" for number in range(uniform._MOST_FEATURES + 1)]
    encoded = features(**{name: [1.0] for name in names}).SerializeToString()

    assert uniform.columns_of([encoded]) is None
    assert uniform.columns_of([encoded], names).keys() == set(names)
    assert uniform.columns_of([encoded] * 2).keys() == set(names)


def test_features_in_one_order_are_aligned():
    rows = [{"a": [number], "b": [b"x" * number, b""], "c": [0.5]} for number in (1, 300)]

    found = aligned.columns_of([features(**row).SerializeToString() for row in rows])

    assert {name: (kind, values.tolist()) for name, (kind, values) in found.items()} == {
        "a": ("int64_list", [[1], [300]]),
        "b": ("bytes_list", [[b"x", b""], [b"x" * 300, b""]]),
        "c": ("float_list", [[0.5], [0.5]]),
    }


@pytest.mark.parametrize(
    "rows",
    [
        [{}, {}],
        [{"a": [1]}, {"a": [1.0]}],
        [{"a": [1]}, {"a": [1, 2]}],
        [{"a": [1]}, {"b": [1]}],
        [{"a": [1]}, {}],
        [{"a": [b"a"]}, {"a": [b"a", b"b"]}],
        [{"a": [b"a"] * 9}] * 2,
    ],
)
def test_other_examples_are_not_aligned(rows):
    assert not aligned.columns_of([features(**row).SerializeToString() for row in rows])


def test_unpacked_floats_are_no_table_and_are_read():
    one = b"\x0d" + np.float32(3).tobytes()  # field 1, one number
    feature = b"\x12" + bytes([len(one)]) + one
    entry = b"\x0a\x01a\x12" + bytes([len(feature)]) + feature
    entries = b"\x0a" + bytes([len(entry)]) + entry
    encoded = b"\x0a" + bytes([len(entries)]) + entries

    assert uniform.columns_of([encoded]) is None
    assert aligned.columns_of([encoded]) is None
    found = read([encoded], signature_of(a=(dtypes.FP32, (1,))))
    assert found == {"a": (dtypes.FP32, (1, 1), "[[3.0]]")}


def test_a_damaged_example_is_named():
    good, bad = (features(a=[number]).SerializeToString() for number in (1, 300))
    bad = bad[:-1] + b"\xff"  # the last byte of a varint says that there is another one

    found = read([good, bad], signature_of(a=(dtypes.INT64, (1,))))

    assert found == f"example 1 of {len(bad)} bytes is no tf.Example"
