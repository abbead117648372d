"""StopStrings ends a text before the first stop string, however the text is cut."""

import pytest
from core_generate import StopStrings
from hypothesis import given
from hypothesis import strategies as st

LETTERS = st.text("ab", max_size=12)


def fed(stops, pieces):
    found = StopStrings(stops)
    given = [found.feed(each) for each in pieces]
    return "".join(given) + found.end(), found.found


def expected(stops, text):
    """Return the text before the stop string and that string, by the definition; (text, "") without one.

    It is the string that ends first; of several that end at one character, the longest.
    """
    for end in range(len(text) + 1):
        for stop in sorted(stops, key=len, reverse=True):
            if stop and text[:end].endswith(stop):
                return text[: end - len(stop)], stop
    return text, ""


@given(st.lists(st.text("ab", min_size=1, max_size=5), max_size=4), st.lists(LETTERS, max_size=8))
def test_any_cut_of_a_text_gives_the_same(stops, pieces):
    assert fed(stops, pieces) == expected(stops, "".join(pieces))


@given(st.lists(st.text("ab", min_size=1, max_size=5), max_size=4), st.lists(LETTERS, max_size=8))
def test_what_is_given_is_never_taken_back(stops, pieces):
    found = StopStrings(stops)
    text = expected(stops, "".join(pieces))[0]

    given = ""
    for each in pieces:
        given += found.feed(each)
        assert text.startswith(given)


def test_text_without_a_begin_of_a_stop_string_is_given_at_once():
    assert StopStrings(["xyz"]).feed("a long text") == "a long text"


def test_only_what_may_belong_to_a_stop_string_is_held_back():
    found = StopStrings(["</s>"])

    assert found.feed("some </") == "some "
    assert found.feed("b") == "</b"
    assert (found.feed("</s"), found.feed("> more"), found.found) == ("", "", "</s>")
    assert (found.feed("more"), found.end()) == ("", "")


def test_an_empty_piece_gives_nothing_that_is_held_back():
    found = StopStrings(["ab"])

    assert (found.feed("a"), found.feed(""), found.feed("c")) == ("", "", "ac")


def test_a_hostile_stop_string_costs_time_in_proportion_to_the_text():
    stop = "a" * 4000 + "b"
    found = StopStrings([stop])

    steps = [found.feed("a") for _ in range(20_000)]

    assert len("".join(steps)) == 16_000


@pytest.mark.parametrize("stops", [[], [""]])
def test_no_stop_strings_change_nothing(stops):
    assert fed(stops, ["a", "b"]) == ("ab", "")
