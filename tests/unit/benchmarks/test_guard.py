"""Instruction counts: the counted lanes, and the report of a count."""

from itertools import pairwise

import pytest

from benchmarks.guard import lane
from benchmarks.guard.__main__ import verdict
from benchmarks.guard.connections import Turns


@pytest.mark.parametrize("name", lane.LANES)
async def test_a_lane_answers_correctly_and_sends_between_begin_and_end(name):
    if not lane.has_engine(name):
        pytest.skip("the engine on nghttp2 was not built")
    told = []

    await lane.ask(name, 2, lambda: told.append("begin"), lambda: told.append("end"))

    assert told == ["begin", "end"]


def test_a_count_within_the_tolerance_is_fine():
    assert verdict(1005, 1000) == ("+0.5%", True)


def test_a_count_above_it_is_reported_with_the_baseline():
    assert verdict(1016, 1000) == ("+1.6%: more than the baseline's 1,000", False)


def test_a_count_below_it_is_to_be_kept():
    text, good = verdict(900, 1000)

    assert good and "keep it with --write" in text


def test_a_lane_without_baseline_is_fine():
    assert verdict(900, None) == ("no baseline", True)


def test_connections_ask_in_turn_each_another_request_every_time():
    turns = Turns(256, 16, each_its_own=False)

    rounds = [turns.next() for _ in range(20)]

    for one, next_one in pairwise(rounds):
        assert all(
            a % 8 != b % 8 for a, b in zip(one, next_one, strict=True)
        )  # others of rows, too
    assert {number % 8 for each in rounds for number in each} == set(range(8))


def test_connections_may_have_requests_of_their_own():
    turns = Turns(2, 5, each_its_own=True)

    assert [turns.next(), turns.next()] == [[0, 1, 0, 1, 0]] * 2
