"""JSON text: Triton's numbers are taken, everything else is refused with its position."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import CoreError, Kind
from frontends.http.codec.json_text import read_json

values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


def refused(data):
    with pytest.raises(CoreError) as caught:
        read_json(data)
    assert caught.value.kind is Kind.INVALID
    return caught.value.message


@given(values)
def test_reads_pythons_json_with_infinities(value):
    text = json.dumps(value).encode()

    assert json.dumps(read_json(text)) == json.dumps(value)


@pytest.mark.parametrize(
    "literal,expected",
    [
        (b"Infinity", math.inf),
        (b"-Infinity", -math.inf),
        (b"Inf", math.inf),
        (b"-Inf", -math.inf),
        (b"1e308", 1e308),
        (b"-0.0", -0.0),
    ],
)
def test_infinities_are_numbers(literal, expected):
    assert read_json(b"[1, " + literal + b', "Inf -NaN \\" Inf"]') == [
        1,
        expected,
        'Inf -NaN " Inf',
    ]


@pytest.mark.parametrize("literal", [b"NaN", b"-NaN"])
def test_nan_is_a_number(literal):
    (found,) = read_json(b"[" + literal + b"]")
    assert math.isnan(found)


@pytest.mark.parametrize(
    "text,position",
    [
        (b"", 0),
        (b"hello", 0),
        (b'{"inputs":[', 11),
        (b"{} x", 3),
        (b"[01]", 2),
        (b'["a\x01"]', 3),
        (b'["\xc3\xa4", x]', 7),
        (b'{"a": 1e400}', 6),
        (b'["\xff"]', 2),
        (b"[Inf, Inf, x]", 11),
        (b"[NaN, Inf, x]", 11),
        (b"\xef\xbb\xbf[1 2]", 6),
        (b"\xef\xbb\xbf", 3),
    ],
)
def test_a_refusal_has_the_position_in_bytes(text, position):
    assert refused(text).endswith(f" at {position}")


def test_a_trailing_comma_is_refused_with_a_position():
    # The comma's own place in newer Pythons, what follows it in older ones.
    assert refused(b"[1,]").endswith((" at 2", " at 3"))


@pytest.mark.parametrize("text", [b'["\\ud800"]', b'["\\ude00\\ud83d"]', b'[NaN, "\\ud800x"]'])
def test_half_a_surrogate_pair_is_refused(text):
    assert "surrogate" in refused(text)


def test_a_whole_surrogate_pair_is_a_character():
    assert read_json(b'[NaN, "\\ud83d\\ude00"]')[1] == "\U0001f600"


@pytest.mark.parametrize("depth", [2000, 200_000])
@pytest.mark.parametrize("start", [b"[", b'{"a":', b"[NaN,["])
def test_depth_beyond_any_use_is_refused(start, depth):
    # Newer Pythons read deeper, and refuse that nothing closes what was opened.
    assert "nesting depth" in refused(start * depth) or depth == 2000


def test_an_integer_of_thousands_of_digits_is_refused_or_read():
    for text in (b"[" + b"9" * 5000 + b"]", b"[NaN," + b"9" * 5000 + b"]"):
        assert "4300" in refused(text) or "double" in refused(text)


@pytest.mark.parametrize("text", [b'"' + b'\\"' * 300_000, b"[Inf," + b'"\\"' * 200_000])
def test_an_open_string_takes_linear_time(text):
    refused(text)


@given(st.binary(max_size=40))
def test_any_bytes_are_read_or_refused(data):
    try:
        read_json(data)
    except CoreError as error:
        assert error.kind is Kind.INVALID
