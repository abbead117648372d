"""The compiled reader of JSON, with Python's json as its oracle."""

import gc
import json
import math
import re

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from core import dtypes
from core.errors import CoreError
from frontends.http.codec.json_tensor import read_tensor
from frontends.http.native.json_value import (
    INFERENCE,
    MEMBERS,
    NOTHING,
    Elements,
    count_values,
    read,
)

MOST = 2**30
texts = st.text() | st.text(alphabet='"\\\\,:[]{}\\n a\u00e4\U0001f600')
scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts
)
values = st.recursive(
    scalars, lambda inner: st.lists(inner) | st.dictionaries(texts, inner), max_leaves=30
)
styles = st.sampled_from(
    [{}, {"indent": 1}, {"separators": (",", ":")}, {"separators": (" , ", " :\t")}]
)


def counted(value):
    """Return the number of values and keys in a value."""
    if isinstance(value, dict):
        return 1 + sum(1 + counted(member) for member in value.values())
    if isinstance(value, list):
        return 1 + sum(map(counted, value))
    return 1


def refused(data, *arguments):
    with pytest.raises(CoreError) as caught:
        read(data, *arguments)
    return caught.value.message


@given(values, styles, st.booleans())
def test_values_are_counted_on_the_text(value, style, ascii_only):
    text = json.dumps(value, ensure_ascii=ascii_only, **style).encode()

    assert count_values(text) == counted(value)


@given(st.binary())
@example(b'"\\')
@example(b'["')
def test_any_bytes_can_be_counted(data):
    assert 0 <= count_values(data) <= len(data) + 1


@given(values, styles, st.booleans(), st.sampled_from([NOTHING, INFERENCE, MEMBERS]))
def test_the_parser_reads_like_python(value, style, ascii_only, plan):
    text = json.dumps(value, ensure_ascii=ascii_only, **style)

    assert repr(read(text.encode(), plan)) == repr(json.loads(text))


@given(values, styles)
def test_the_bound_of_values_is_exact(value, style):
    text = json.dumps(value, **style).encode()
    count = counted(value)

    assert repr(read(text, NOTHING, count)) == repr(json.loads(text))
    assert f" {count} values and keys; {count - 1} are the most" in refused(
        text, NOTHING, count - 1
    )


@given(values, st.integers(0, 10_000), st.sampled_from(list('{}[],:"\\\\ 0-.eE+tfnul\x00\x1f')))
def test_a_damaged_text_is_refused_where_python_refuses_it(value, place, sign):
    text = json.dumps(value)
    place %= len(text)
    damaged = text[:place] + sign + text[place + 1 :]

    try:
        expected = json.loads(damaged)
        json.dumps(expected, ensure_ascii=False).encode()  # half a surrogate pair is no text
    except (ValueError, UnicodeEncodeError):
        assert re.search(r"\. at \d+$", refused(damaged.encode()))
    else:
        if math.inf not in numbers_in(expected):
            assert comparable(read(damaged.encode())) == comparable(expected)


def numbers_in(value):
    if isinstance(value, dict):
        return [each for member in value.values() for each in numbers_in(member)]
    if isinstance(value, list):
        return [each for element in value for each in numbers_in(element)]
    return [abs(value)] if isinstance(value, int | float) else []


def comparable(value):
    """An integer of more than 64 bits is a float here."""
    if isinstance(value, dict):
        return {key: comparable(member) for key, member in value.items()}
    if isinstance(value, list):
        return [comparable(element) for element in value]
    wide = type(value) is int and not -(2**63) <= value < 2**64
    return repr(float(value) if wide else value)


def test_a_second_member_of_a_name_counts():
    assert read(b'{"a":1,"b":2,"a":3}') == {"a": 3, "b": 2}


def test_no_garbage_is_collected_while_values_are_made():
    collections = []

    def begun(phase, info):
        collections.append(phase)

    text = b"[" + b"[[]]," * 15_000 + b"1]"
    gc.collect()
    gc.callbacks.append(begun)
    try:
        read(text)
    finally:
        gc.callbacks.remove(begun)

    assert collections == []
    assert gc.isenabled()


def test_a_collector_that_is_off_stays_off():
    gc.disable()
    try:
        read(b"[1]")
        with pytest.raises(CoreError):
            read(b"[")
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_text_next_to_tensors_has_a_limit():
    assert len(read(b'"' + b"a" * 2**22 + b'"')) == 2**22
    assert "4194304 bytes of text" in refused(b'["a","' + b"a" * 2**22 + b'"]')


# What stays text -----------------------------------------------------------------------


def document(text):
    return b'{"inputs":[{"name":"x","data":' + text + b"}]}"


def kept(value):
    """The elements of `data`, which is large."""
    return read(document(json.dumps(value).encode()), INFERENCE)["inputs"][0]["data"]


def outcome(dtype, shape, data, most=MOST):
    try:
        return bytes(read_tensor("x", dtype, shape, data, most).raw)
    except CoreError as error:
        return error.message


def leaves(value):
    return sum(map(leaves, value)) if isinstance(value, list) else 1


elements = {
    "bool": st.booleans(),
    "int": st.integers(-(2**63), 2**64 - 1),
    "small": st.integers(-129, 256),
    "float": st.floats(allow_nan=False, width=32) | st.floats(),
    "text": texts,
    "any": scalars | st.dictionaries(texts, scalars, max_size=2),
}


@given(st.data(), st.sampled_from(dtypes.ALL), st.sampled_from(sorted(elements)))
def test_elements_that_stay_text_make_the_tensor_that_a_list_makes(data, dtype, kind):
    few = data.draw(st.lists(elements[kind], min_size=1, max_size=20))
    nested = data.draw(st.sampled_from([lambda x: x, lambda x: [x], lambda x: [[x], [], x]]))
    value = nested(few * 40)
    more = data.draw(st.sampled_from([0, 0, 0, 1]))
    value = value if len(few) * 40 > 256 else value + [few] * 300
    expected = json.loads(json.dumps(value))

    found = kept(value)

    assert type(found) is Elements and found.is_array
    assert (len(found), found.count) == (len(expected), leaves(expected))
    shape = (leaves(expected) + more,)
    assert outcome(dtype, shape, found) == outcome(dtype, shape, expected)
    assert outcome(dtype, shape, found, 1000) == outcome(dtype, shape, expected, 1000)


def test_elements_are_as_deep_as_a_tensor_may_be():
    for depth in (98, 99, 100, 101, 300):
        text = b"[" * depth + b"1," * 300 + b"1" + b"]" * depth
        found = read(document(text), INFERENCE)["inputs"][0]["data"]

        assert found.is_too_deep == (depth > 100)
        assert outcome(dtypes.FP32, (301,), found) == outcome(dtypes.FP32, (301,), json.loads(text))


@pytest.mark.parametrize(
    ("plan", "text"),
    [
        (NOTHING, '{"inputs":[{"data":%s}]}'),
        (INFERENCE, '{"inputs":[{"shape":%s}]}'),
        (INFERENCE, '{"outputs":[{"data":%s}]}'),
        (INFERENCE, '{"inputs":{"data":%s}}'),
        (INFERENCE, '{"data":%s}'),
        (MEMBERS, '{"x":{"y":%s}}'),
        (MEMBERS, '{"parameters":[%s]}'),
        (MEMBERS, "%s"),
    ],
)
def test_elsewhere_a_large_array_is_a_list_and_counts(plan, text):
    numbers = list(range(1000))
    filled = (text % json.dumps(numbers)).encode()

    assert read(filled, plan) == json.loads(filled)
    assert "values and keys; 1000 are the most" in refused(filled, plan, 1000)


def test_an_array_counts_from_its_257th_value_on_as_one():
    for plan, text in ((INFERENCE, document(b"%s")), (MEMBERS, b'{"parameters":{"x":%s}}')):
        small = text.replace(b"%s", json.dumps([1] * 255).encode())
        large = text.replace(b"%s", json.dumps([1] * 256).encode())

        assert read(small, plan) == json.loads(small)
        assert "Elements" in repr(read(large, plan, 10))


def test_a_long_string_among_members_stays_text_with_its_escapes():
    for text in ("a" * 70_000, 'ä\\"\n\U0001f600' * 20_000, "\u20ac/" * 40_000):
        for ascii_only in (False, True):
            data = json.dumps({"x": text}, ensure_ascii=ascii_only).encode()

            found = read(data, MEMBERS)["x"]

            assert not found.is_array and (len(found), found.count) == (1, 1)
            assert found.characters().decode() == text
            assert found.text_bytes == len(text.encode())
            assert outcome(dtypes.BYTES, (1,), found) == outcome(dtypes.BYTES, (1,), [text])


def test_elements_keep_the_text_that_they_view():
    data = bytearray(document(b"[" + b"1.5," * 300 + b"2]"))
    found = read(memoryview(data), INFERENCE)["inputs"][0]["data"]

    with pytest.raises(BufferError):
        data.clear()
    raw, _ = found.numbers(dtypes.FP32, 4)
    assert np.frombuffer(raw, np.float32).tolist() == [1.5] * 300 + [2.0]
