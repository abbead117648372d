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


def detokenize_with_joined_words(tokens):
    """Return the text of tokens as some tokenizers do: without the space in " n't"."""
    return "".join(tokens).replace(" n't", "n't")


@given(st.lists(st.text(), max_size=4))
def test_texts_that_share_pieces_are_those_of_their_tokens(texts):
    pieces = {}

    for text in texts * 2:
        found = TokenText(detokenize, pieces)
        assert "".join([found.feed([each]) for each in text.encode()]) + found.end() == text


@given(st.lists(st.lists(st.integers(0, 9), max_size=30), max_size=4))
def test_a_first_word_has_no_space_and_later_ones_have_it_with_shared_pieces(texts):
    pieces = {}

    for tokens in texts:
        found = TokenText(detokenize_without_first_space, pieces)
        text = "".join([found.feed([each]) for each in tokens])
        assert text == detokenize_without_first_space(tokens)


def test_a_token_is_detokenized_once_for_all_texts_that_share_pieces():
    asked, pieces = [], {}

    def counted(tokens):
        asked.append(len(tokens))
        return detokenize(tokens)

    for _ in range(10):
        found = TokenText(counted, pieces)
        assert "".join([found.feed([each]) for each in b"abababab"]) == "abababab"

    assert (
        len(asked) == 3 + 9
    )  # of the first text the first "a", "b" and "a"; of the others the first "a"


def test_a_piece_that_changes_the_text_before_it_is_no_piece_of_others():
    pieces = {}
    for tokens in (["It", "do", " n", "'t"], ["It", "don", "'t"], ["It", "don", "'t"]):
        found = TokenText(detokenize_with_joined_words, pieces)
        text = "".join([found.feed([each]) for each in tokens])

    assert text == "Itdon't"


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
