"""When a version breaks its objective, and the settings after it."""

import pytest
from core_traffic.arm import Arm
from core_traffic.objective import judged, without
from core_traffic.report import window_of
from core_traffic.settings import Traffic

S = 1_000_000_000
MS = 1_000_000


class Clock:
    now_ns = 0

    def __call__(self):
        return self.now_ns


def traffic(weights, rules=(), **rollback):
    return Traffic.read("m", {"weights": weights, "rules": list(rules), "rollback": rollback})


def window(*results, clock=None, window_s=10.0, slow_ms=0):
    """The window of an arm after (result, milliseconds) …"""
    arm = Arm(window_s, clock or Clock())
    arm.slow_ns = slow_ms * MS
    for result, ms in results:
        arm.ended(result, ms * MS)
    return window_of([arm.recent()])


def test_errors_over_the_rate_break_it():
    objective = traffic({"1": 1}, error_rate=0.1).rollback

    assert objective.broken(window(*[("success", 1)] * 9, ("error", 1))) == ""
    assert objective.broken(window(*[("success", 1)] * 8, *[("error", 1)] * 2)) == (
        "2 of 10 requests failed in 10 s, more than 10 %"
    )
    assert objective.broken(window()) == ""
    assert objective.broken(window(("refused", 1), ("cancelled", 1))) == ""


def test_a_slow_p99_breaks_it():
    objective = traffic({"1": 1}, p99_ms=100).rollback

    assert objective.broken(window(*[("success", 50)] * 99, ("success", 500))) == ""
    assert "the p99 of 100 requests in 10 s was" in objective.broken(
        window(*[("success", 50)] * 98, *[("success", 500)] * 2)
    )


def test_clients_that_give_up_after_the_limit_count_as_slow():
    results = [("cancelled", 500)] * 3 + [("cancelled", 5)] * 3

    assert window(*results, slow_ms=100)["requests"] == 3
    assert traffic({"1": 1}, p99_ms=100).rollback.broken(window(*results, slow_ms=100))


def test_too_few_requests_decide_nothing():
    objective = traffic({"1": 1}, error_rate=0, min_requests=5).rollback

    assert not objective.enough(window(*[("error", 1)] * 4))
    assert objective.enough(window(*[("error", 1)] * 5))


def test_the_window_forgets():
    clock = Clock()
    arm = Arm(10.0, clock)
    arm.ended("error", MS)
    clock.now_ns = 9 * S
    assert arm.recent()["errors"] == 1
    clock.now_ns = 11 * S

    assert arm.recent()["errors"] == 0


def test_windows_of_processes_are_added():
    parts = []
    for errors in (0, 3):
        arm = Arm(10.0, Clock())
        for number in range(10):
            arm.ended("error" if number < errors else "success", MS)
        parts.append(arm.recent())

    assert (window_of(parts)["requests"], window_of(parts)["error_rate"]) == (20, 0.15)


@pytest.mark.parametrize(
    ("weights", "more", "bad", "expected"),
    [
        ({"1": 60, "2": 30, "3": 10}, {}, 3, {1: 60, 2: 30, 3: 0}),
        ({"1": 60, "2": 30, "3": 10}, {"to": 2}, 3, {1: 60, 2: 40, 3: 0}),
        ({"1": 0, "2": 100}, {"to": 1}, 2, {1: 100, 2: 0}),
        ({"1": 0, "2": 100}, {}, 2, None),
    ],
)
def test_its_weight_goes_to_the_others(weights, more, bad, expected):
    after = without(traffic(weights, error_rate=0, **more), bad, {1, 2, 3})

    assert (after and after.weights) == expected


def test_its_rules_go_too():
    rules = [{"parameter": "a", "version": 2}, {"parameter": "b", "version": 1}]
    before = traffic({"1": 1}, rules, error_rate=0)

    after = without(before, 2, {1, 2})

    assert [rule.version for rule in after.rules] == [1]
    assert (after.weights, after.rollback) == (before.weights, before.rollback)


def test_without_another_version_that_is_ready_nothing_changes():
    assert without(traffic({"1": 1, "2": 1}, error_rate=0), 2, {2}) is None


def test_the_version_to_fall_back_to_is_never_judged():
    rules = [{"parameter": "a", "version": 3}]

    assert judged(traffic({"1": 1, "2": 1, "4": 0}, rules, error_rate=0, to=1)) == {2, 3}
    assert judged(Traffic.read("m", {"weights": {"1": 1}})) == set()
