"""Which levels are measured, with a server whose latency and capacity are formulas."""

import pytest
from core_bench.measure.result import CaseResult, RoundResult
from core_bench.measure.rounds import meets
from core_bench.measure.search import search
from core_bench.native.engine import Tally
from core_bench.plan import Level, Objective, Pace, Plan, Side, Timing

SIDE = Side("m", "m", "")
CAPACITY = 1000.0  # answers per second
SERVICE_S = 0.01  # so that ten at once are its limit


def tally_of(level):
    """Return what a round of a second measures."""
    made = Tally()
    made.begin(0, 10**9)
    if level.open:
        rate, latency_s = level.value, SERVICE_S if level.value <= CAPACITY else 5.0
        for _ in range(int(max(rate - CAPACITY, 0))):
            made.censored(10**9, False)
        rate = min(rate, CAPACITY)
    else:
        rate = min(level.value / SERVICE_S, CAPACITY)
        latency_s = level.value / rate
    for _ in range(int(rate)):
        made.answered(1, 1, 0, 0, 0, 0, False, round(latency_s * 1e9) + 1)
    made.begin(0, 10**9)
    return made


class Formula:
    """Stands for a Measurement; it keeps what was asked."""

    def __init__(self):
        self.measured = []

    def measure(self, levels, rounds=0):
        self.measured += [each.value for each in levels]
        return [
            CaseResult(SIDE, each, [RoundResult(tally_of(each), None, None)]) for each in levels
        ]


def plan(level, search_for, objective_s=None, last=None, step=1.0):
    levels = [Level(level.pace, level.value)]
    levels += [Level(level.pace, last)] if last else []
    objective = Objective(0.99, objective_s) if objective_s else None
    return Plan([SIDE], levels, Timing(), search_for, step, objective)


CLOSED, RATE = Level(Pace.CLOSED, 1), Level(Pace.CONSTANT, 100.0)


def test_a_range_without_an_end_stops_behind_the_first_level_above_the_objective():
    measured = Formula()

    best = search(plan(CLOSED, "until", 0.0121), measured)

    assert best.level.value == 12  # 12 at once need 12 ms
    assert measured.measured == [float(each) for each in range(1, 14)]


@pytest.mark.parametrize("objective_s", [0.0105, 0.0205, 0.0505, 9.0])
def test_a_binary_search_finds_the_last_level_within_the_objective(objective_s):
    measured = Formula()

    best = search(plan(CLOSED, "binary", objective_s, last=64.0), measured)

    assert best.level.value == min(64, max(10, int(objective_s * 1000)))
    assert len(measured.measured) <= 7


def test_no_level_may_be_within_the_objective():
    assert search(plan(CLOSED, "until", 0.001), Formula()) is None
    assert search(plan(CLOSED, "binary", 0.001, last=8.0), Formula()) is None
    assert search(plan(CLOSED, "knee", 0.001), Formula()) is None


def test_the_knee_of_a_closed_loop_is_where_the_rate_stops_growing():
    measured = Formula()

    best = search(plan(CLOSED, "knee"), measured)

    assert best.level.value == 16  # 8 at once give 800 answers, 16 give 1000, 32 give no more
    assert measured.measured == [1, 2, 4, 8, 16, 32, 16]


def test_the_knee_within_an_objective_is_exact_to_one_request_at_once():
    best = search(plan(CLOSED, "knee", 0.0135), Formula())

    assert best.level.value == 13


def test_the_knee_of_rates_is_the_capacity():
    best = search(plan(RATE, "knee"), Formula())

    assert best.level.value == pytest.approx(CAPACITY, rel=0.05)
    assert best.level.value <= 1.011 * CAPACITY  # one percent may be late


def test_a_case_with_errors_or_without_rounds_meets_nothing():
    wrong = tally_of(CLOSED)
    wrong.error("no")

    assert not meets(CaseResult(SIDE, CLOSED), None)
    assert not meets(CaseResult(SIDE, CLOSED, [RoundResult(wrong, None, None)]), None)
    assert meets(CaseResult(SIDE, CLOSED, [RoundResult(tally_of(CLOSED), None, None)]), None)
