"""The text of a key at the top level of JSON, beside what a parser says."""

import json
import random
import time

import pytest
from core_router.http.sequence_parameters import _parsed_model, model_in
from core_router.http.top_level import text_at_top
from routing.running import compiled_only

KEY = b"model"


@pytest.mark.parametrize(
    ("body", "found"),
    [
        (b'{"model":"a"}', "a"),
        (b' \r\n\t{ "x" : [ { "model" : "no" } ] , "model" : "a" , "y":{}} ', "a"),
        (b'{"model":"a","model":"b"}', "b"),
        (b'{"model":"a","model":5}', ""),
        (b'{"model":"a","model":{"model":"b"}}', ""),
        (b'{"x":"model","y":["model","no"],"z":{"model":"no"}}', ""),
        (b'{"\\u006dodel":"a"}', "a"),
        (b'{"mode\\u006C":"a"}', "a"),
        (b'{"mode\\u006D":"a"}', ""),
        (b'{"x":"\\"model\\":\\\\","model":"org\\/m\\u00e9"}', "org/mé"),
        ('{"é":"ÿ€😀","model":"é€😀"}'.encode(), "é€😀"),
        (b'{"model"', ""),
        (b'{"model":', ""),
        (b'{"model":"a', ""),
        (b'{"model":"a"', ""),
        (b'{"model":"\\x"}', ""),
        (b'{"model":"\xff"}', ""),
        (b'["model","a"]', ""),
        (b'"model"', ""),
        (b"{}", ""),
        (b"{", ""),
        (b" ", ""),
        (b"", ""),
    ],
)
def test_a_text_at_the_top(body, found):
    assert text_at_top(body, KEY) == _parsed_model(body) == found


def value(draw, depth=0):
    """Return a random value of JSON, in which the key may be anywhere."""
    kind = draw.randrange(9 if depth < 4 else 6)
    if kind < 3:
        return draw.choice(
            ["", "model", '"', "\\", '\\"model":"', "é😀\x01", "x" * 300, "y\\" * 3000]
        )
    if kind < 6:
        return draw.choice([0, -1.5e9, True, None])
    size = draw.randrange(4)
    if kind < 7:
        return [value(draw, depth + 1) for _ in range(size)]
    keys = [
        draw.choice(["model", "Model", "model\\", "m", "", "mod\u0000", "x" * 5])
        for _ in range(size)
    ]
    return {each: value(draw, depth + 1) for each in keys}


def test_it_says_what_a_parser_says():
    draw = random.Random(3)
    for _ in range(3000):
        given = value(draw)
        text = json.dumps(given, ensure_ascii=draw.random() < 0.5, indent=draw.choice([None, 1]))
        expected = given.get("model") if isinstance(given, dict) else None

        found = text_at_top(text.encode(), KEY)

        assert found == (expected if isinstance(expected, str) else ""), text


def test_any_bytes_have_a_text_or_none():
    draw = random.Random(5)
    for _ in range(5000):
        size = draw.randrange(30)
        text = b'{"model":"a",' + bytes(draw.choice(b'{}[]",:\\model u0\xff') for _ in range(size))

        assert isinstance(text_at_top(text, KEY), str)


@pytest.mark.parametrize(
    "size", [0, 1, 254, 255, 256, 257, 4094, 4095, 4096, 4097, 4351, 4352, 4353, 9000]
)
@pytest.mark.parametrize("end", ["", "\\\\", '\\"', '\\\\\\"'])
def test_a_long_text_ends_where_its_quote_is(size, end):
    body = b'{"x":"%b","model":"a"}' % (b"-" * size + end.encode())

    assert text_at_top(body, KEY) == "a"


MANY = {
    "numbers": b'{"model":"a","x":[' + b"1," * 2_000_000 + b"1]}",
    "objects": b'{"model":"a","x":[' + b"{}," * 1_500_000 + b"{}]}",
    "keys": b"{" + b'"k":1,' * 700_000 + b'"model":"a"}',
    "names": b"{" + b'"model":"a",' * 350_000 + b'"model":"a"}',
    "texts": b'{"model":"a","x":[' + b'"",' * 1_500_000 + b'""]}',
    "escapes": b'{"model":"a","x":"' + b"\\n" * 2_000_000 + b'"}',
    "escapes after a long text": b'{"model":"a","x":"' + b"-" * 300 + b"\\n" * 2_000_000 + b'"}',
    "escapes in long texts": b'{"model":"a","x":"' + (b"-" * 300 + b"\\n") * 13_000 + b'"}',
    "levels": b'{"model":"a","x":' + b"[" * 2_000_000 + b"]" * 2_000_000 + b"}",
}


@compiled_only
@pytest.mark.parametrize("body", MANY.values(), ids=MANY)
def test_megabytes_of_small_values_take_no_time(body):
    began_s = time.thread_time()

    assert model_in(body) == "a"
    # A parser takes ten times as long for keys and objects.
    assert time.thread_time() - began_s < 0.1


@pytest.mark.parametrize("body", MANY.values(), ids=MANY)
def test_without_the_compiled_part_megabytes_take_a_moment(body):
    began_s = time.thread_time()

    found = _parsed_model(body)

    assert time.thread_time() - began_s < 1
    assert found == ("" if max(body.count(b","), body.count(b"[")) > 1_000_000 else "a")


def test_keys_with_escapes_have_a_bound():
    escaped = b'"m\\u006fdel":"a",'

    assert text_at_top(b"{" + escaped * 99 + b'"x":1}', KEY) == "a"
    assert text_at_top(b"{" + escaped * 200_000 + b'"model":"a"}', KEY) == ""
