"""A replay that compares too little, or lists less than it counts, is wrong."""

import pytest

from replay.judged import problems


def report(equal=100, uncompared=5, differing=0, unanswered=0, unsent=0, listed=0):
    return {
        "equal": equal,
        "uncompared": uncompared,
        "differing": differing,
        "unanswered": unanswered,
        "unsent": unsent,
        "differences": [{}] * listed,
    }


def test_a_replay_whose_differences_all_have_a_reason_is_right():
    reports = {"server-1": report(), "server-2": report(differing=1, unsent=2, listed=3)}

    assert problems(reports, [], least=200) == []


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({}, "0 answers are equal, expected 100 at least"),
        ({"a": report(99)}, "99 answers are equal, expected 100 at least"),
        ({"a": report(uncompared=6)}, "6 of 106 answers were not compared, expected 5% at most"),
        (
            {"a": report(differing=1, unanswered=1, unsent=1, listed=2)},
            "a: 3 answers differ or are missing, but 2 are listed: the others were not looked at",
        ),
    ],
)
def test_what_was_not_compared_is_a_problem(given, text):
    assert problems(given, [], least=100) == [text]


def test_a_difference_without_a_reason_is_a_problem():
    assert problems({"a": report(differing=1, listed=1)}, ["a #3 /v2: 1, now 2"], 100) == [
        "a #3 /v2: 1, now 2"
    ]
