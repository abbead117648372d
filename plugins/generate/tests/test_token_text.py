"""TokenText makes text of tokens, whole characters only."""

from core_generate import TokenText
from hypothesis import given
from hypothesis import strategies as st


def detokenize(tokens):
    return bytes(tokens).decode(errors="replace")


def detokenize_without_first_space(tokens):
    """Return the text of tokens as some tokenizers do: a space before each word but the first."""
    return "".join(f" w{each}" for each in tokens).removeprefix(" ")


@given(st.text(), st.integers(1, 7))
def test_the_text_is_that_of_all_tokens_however_they_arrive(text, size):
    tokens = list(text.encode())
    found = TokenText(detokenize)

    pieces = [found.feed(tokens[i : i + size]) for i in range(0, len(tokens), size)]

    assert "".join(pieces) + found.end() == text


@given(st.text(min_size=1))
def test_a_character_appears_with_its_last_byte(text):
    found = TokenText(detokenize)

    for character in text:
        *first, last = character.encode()
        assert [found.feed([each]) for each in first] == [""] * len(first)
        assert found.feed([last]) == character or character == "\ufffd"


def test_spaces_between_words_are_kept():
    found = TokenText(detokenize_without_first_space)

    text = "".join(found.feed([each]) for each in range(100))

    assert text == detokenize_without_first_space(range(100))


def test_an_incomplete_character_comes_at_the_end():
    found = TokenText(detokenize)

    assert found.feed([65, 0xE2, 0x82]) == "A"
    assert found.end() == "\ufffd"
    assert found.end() == ""


def test_tokens_that_are_never_a_character_do_not_collect():
    found = TokenText(detokenize)

    pieces = [found.feed([0xFF]) for _ in range(1000)]

    assert len("".join(pieces)) > 900
    assert len(found._tokens) < 100
