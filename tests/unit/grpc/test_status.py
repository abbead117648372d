"""Kinds of errors and their texts on the wire."""

import grpc
import pytest

from core.errors import Kind
from frontends.grpc.status import CODES, LONGEST_DETAILS, Code, details


def test_every_kind_has_a_code():
    assert CODES.keys() == set(Kind)


@pytest.mark.parametrize("code", list(Code), ids=lambda code: code.name)
def test_codes_are_those_of_grpc(code):
    assert grpc.StatusCode[code.name].value[0] == code


@pytest.mark.parametrize("text", ["", "plain", "two\nlines", "snow: \u2603", "100 %"])
def test_an_ascii_text_is_unchanged(text):
    assert details(text) == text


def test_half_a_surrogate_pair_becomes_a_question_mark():
    assert details("a\ud800b") == "a?b"


@pytest.mark.parametrize("letter", ["a", "\n", "\u2603", "\U0001f600"])
def test_a_long_text_is_cut_to_the_limit_of_clients(letter):
    found = details(letter * 100_000)

    wire_size = len(letter.encode()) * 3 if letter != "a" else 1
    count = LONGEST_DETAILS // wire_size
    assert found == letter * count + " [...]"
