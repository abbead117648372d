"""TokenText makes text of tokens, whole characters only."""

import pytest
from core_generate import TokenText
from hypothesis import example, given
from hypothesis import strategies as st

WORDS = "ab "  # the characters with a token of their own; the others are tokens for their bytes
texts = st.text() | st.text(st.sampled_from("ab \n\xa0€éì囧好\u3000😀"), max_size=60)


def detokenize(tokens):
    return bytes(tokens).decode(errors="replace")


def detokenize_without_first_space(tokens):
    """Return the text of tokens as some tokenizers do: a space before each word but the first."""
    return "".join(f" w{each}" for each in tokens).removeprefix(" ")


def detokenize_without_incomplete_characters(tokens):
    return bytes(tokens).decode(errors="ignore")


def detokenize_with_runs_of_bytes(tokens):
    """Return the text of tokens as the tokenizers of Llama 2 and Mistral do.

    A token is a character or a byte. If the bytes between two characters are no text, each becomes U+FFFD.
    """
    text, run = "", b""
    for each in [*tokens, ""]:
        if isinstance(each, int):
            run += bytes([each])
            continue
        try:
            text += run.decode()
        except UnicodeDecodeError:
            text += "\ufffd" * len(run)
        text, run = text + each, b""
    return text.removeprefix(" ")


def tokens_with_runs_of_bytes(text):
    return [token for each in text for token in (each if each in WORDS else each.encode())]


@given(st.text(), st.integers(1, 7))
def test_the_text_is_that_of_all_tokens_however_they_arrive(text, size):
    tokens = list(text.encode())
    found = TokenText(detokenize)

    pieces = [found.feed(tokens[i : i + size]) for i in range(0, len(tokens), size)]

    assert "".join(pieces) + found.end() == text


@given(texts, st.integers(1, 7))
@example("a😀😀b", 1)
@example("b囧囧囧好好囧囧好囧囧\n", 1)  # more bytes in a row than are kept
@example("a" * 9 + "😀bbb" + "囧", 1)
def test_whole_characters_before_an_incomplete_one_are_kept(text, size):
    tokens = tokens_with_runs_of_bytes(text)
    found, pieces = TokenText(detokenize_with_runs_of_bytes), []

    for i in range(0, len(tokens), size):
        pieces.append(found.feed(tokens[i : i + size]))

    assert "".join(pieces) + found.end() == text.removeprefix(" ")


def test_the_rest_of_a_run_of_bytes_that_is_no_text_has_no_character_twice():
    found = TokenText(detokenize_with_runs_of_bytes)

    assert found.feed(tokens_with_runs_of_bytes("a😀")) == "a😀"
    assert found.feed([0xE2]) == ""
    assert found.feed(["b"]) == "\ufffdb"
    assert found.feed([*tokens_with_runs_of_bytes("😀"), 0xE2]) == "😀"
    assert found.end() == "\ufffd"


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


@pytest.mark.parametrize(
    ("detokenize", "tokens_of"),
    [
        (detokenize, str.encode),
        (detokenize_without_incomplete_characters, str.encode),
        (detokenize_with_runs_of_bytes, tokens_with_runs_of_bytes),
    ],
)
@given(st.lists(texts, max_size=4))
@example(["x€", "xì ë"])
@example(["x\u3000", "x\u2000"])  # spaces of several bytes
@example(["a" * 12 + "\u3000aab", "b😀"])
def test_texts_that_share_pieces_are_those_of_their_tokens(detokenize, tokens_of, texts):
    pieces = {}

    for text in texts * 2:
        found, tokens = TokenText(detokenize, pieces), list(tokens_of(text))
        expected = detokenize(tokens)
        assert "".join([found.feed([each]) for each in tokens]) + found.end() == expected


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

    # Of the first text the first "a", then "b" and "a" in their place and alone; of the others the first "a".
    assert len(asked) == 5 + 9


def test_a_piece_that_changes_the_text_before_it_is_no_piece_of_others():
    pieces = {}
    for tokens in (["It", "do", " n", "'t"], ["It", "don", "'t"], ["It", "don", "'t"]):
        found = TokenText(detokenize_with_joined_words, pieces)
        text = "".join([found.feed([each]) for each in tokens])

    assert text == "Itdon't"


def test_a_token_that_changes_the_text_before_it_is_not_lost():
    found = TokenText(detokenize_with_joined_words)

    assert [found.feed([each]) for each in ("do", " n", "'t")] == ["do", " n", "'t"]


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


PROMPTS = ["a", "", " b", "aa" * 9, "囧", "囧囧囧囧囧", "b😀😀😀", "a" * 7 + "é😀"]
SPLIT = [(detokenize, str.encode), (detokenize_with_runs_of_bytes, tokens_with_runs_of_bytes)]


@pytest.mark.parametrize(("detokenize", "tokens_of"), SPLIT)
@pytest.mark.parametrize("missing", range(4))
@pytest.mark.parametrize("prompt", PROMPTS)
@pytest.mark.parametrize("ends", [None, {}])
def test_a_character_that_the_prompt_begins_is_part_of_the_answer(
    detokenize, tokens_of, prompt, missing, ends
):
    tokens = list(tokens_of(prompt + "😀 ab"))
    begun = len(tokens_of(prompt)) + 4 - missing
    found = TokenText(detokenize, ends=ends)

    found.follow(tokens[:begun])
    text = "".join([found.feed([each]) for each in tokens[begun:]]) + found.end()

    assert text == ("😀 ab" if missing else " ab")


@pytest.mark.parametrize(("detokenize", "tokens_of"), SPLIT)
@pytest.mark.parametrize("missing", range(1, 4))
@pytest.mark.parametrize("prompt", PROMPTS)
@pytest.mark.parametrize("answer", ["ab", " b囧", ""])
@pytest.mark.parametrize("ends", [None, {}])
def test_a_character_that_the_answer_does_not_end_is_no_part_of_it(
    detokenize, tokens_of, prompt, missing, answer, ends
):
    found = TokenText(detokenize, ends=ends)

    found.follow(list(tokens_of(prompt + "😀"))[:-missing])
    text = "".join([found.feed([each]) for each in tokens_of(answer)]) + found.end()

    assert text == answer


@pytest.mark.parametrize("ends", [None, {}])
def test_the_first_word_behind_a_prompt_has_its_space(ends):
    found = TokenText(detokenize_without_first_space, ends=ends)

    found.follow(range(100))

    assert found.feed([1]) == " w1"


@pytest.mark.parametrize(("detokenize", "tokens_of"), SPLIT)
@given(st.lists(st.tuples(texts, texts), max_size=4))
@example([("a", "b"), ("é", "a"), ("éa", "é")])
def test_an_answer_is_the_same_with_known_ends_of_prompts(detokenize, tokens_of, chats):
    pieces, ends = {}, {}

    for prompt, answer in chats * 2:
        found = TokenText(detokenize, pieces, ends)
        found.follow(list(tokens_of("x" + prompt)))
        text = "".join([found.feed([each]) for each in tokens_of(answer)]) + found.end()
        assert text == answer


def test_a_prompt_whose_end_is_known_is_not_detokenized():
    asked, ends = [], {}

    def counted(tokens):
        asked.append(list(tokens))
        return detokenize(tokens)

    for prompt in (b"one a", b"two a", b"three b", b"four b"):
        TokenText(counted, {}, ends).follow(prompt)

    assert asked == [list(b"a"), list(b"b")]


def test_a_prompt_may_have_bytes_that_are_no_text():
    found = TokenText(detokenize)

    found.follow([0xFF] * 100)

    assert found.feed(b"ab") == "ab"
