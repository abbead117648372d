"""What `make soak-traffic` finds wrong, with facts that are made up."""

import pytest

from rollout.judge import Found, judge_copies, judge_failures, judge_rate, judge_share
from rollout.load import Seen
from rollout.models import BAD, ERROR, write_models

PLANTED = f"500 {{'error': '{ERROR}'}}"


def counts(**given):
    return dict.fromkeys(("equal", "differing", "error", "dropped", "skipped"), 0) | given


def copies(answers, expected="equal", **given):
    found = Found()
    judge_copies(found, "copies", counts(**given), answers, expected)
    return found.problems


def test_all_copies_but_a_few_are_as_expected():
    assert copies(100, equal=100) == []
    assert copies(100, equal=95, dropped=5) == []
    assert copies(100, "differing", differing=100) == []


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"equal": 94, "dropped": 6}, "copies: 6 dropped, expected 5 at most"),
        ({"dropped": 100}, "copies: 100 dropped, expected 5 at most"),
        ({"equal": 99, "differing": 1}, "1 differing, 0 error, 0 dropped, 0 skipped, expected 100"),
        ({"equal": 99, "skipped": 1}, "1 skipped, expected 100 equal"),
    ],
)
def test_copies_that_are_not_made_or_come_out_otherwise_are_a_problem(given, text):
    (problem,) = copies(100, **given)

    assert text in problem


def test_only_the_planted_error_may_fail_requests_before_a_rollback():
    found = Found()

    judge_failures(found, "rollback", [PLANTED] * 9, planted=ERROR)
    assert found.problems == []

    judge_failures(found, "rollback", [PLANTED, "503 {'error': 'no version'}"], planted=ERROR)
    judge_failures(found, "1 %", [PLANTED])
    assert found.problems == [
        "rollback: 1 failed: [\"503 {'error': 'no version'}\"]",
        f"1 %: 1 failed: {[PLANTED]}",
    ]


def test_the_planted_error_is_that_of_the_version_that_fails(tmp_path):
    write_models(tmp_path)

    assert ERROR in (tmp_path / "m" / str(BAD) / "model.py").read_text()
    assert ERROR not in (tmp_path / "m" / "1" / "model.py").read_text()


@pytest.mark.parametrize(("rate", "problems"), [(95, 0), (94, 1)])
def test_a_load_below_the_rate_shows_nothing(rate, problems):
    found = Found()

    judge_rate(found, "1 %", rate, 100)

    assert len(found.problems) == problems


@pytest.mark.parametrize(
    ("count", "total", "share", "problems"),
    [
        (300, 1000, 0.25, 0),  # z +3.65
        (306, 1000, 0.25, 1),  # z +4.09
        (194, 1000, 0.25, 1),
        (1000, 1000, 1.0, 0),
        (999, 1000, 1.0, 1),
        (125, 500, 0.25, 0),
        (125, 499, 0.25, 1),  # half of the requests belong to no step
    ],
)
def test_a_share_far_from_its_weight_or_of_few_requests_is_a_problem(count, total, share, problems):
    found = Found()

    judge_share(found, "25 %", count, total, share, due=1000)

    assert len(found.problems) == problems


def test_a_request_on_the_way_at_a_change_belongs_to_no_step():
    seen = Seen(times=[(0.9, 1.1, 1), (1.1, 1.2, 2), (1.8, 1.9, 1), (1.9, 2.1, 2), (2.2, 2.3, 2)])

    assert seen.between(1.0, 2.0) == {1: 1, 2: 1}
