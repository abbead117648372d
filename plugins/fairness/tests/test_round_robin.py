"""Deficit round robin: shares over time, precedence for flows that are seldom busy, debts."""

from collections import Counter

import pytest
from core_fairness.round_robin import Flow, RoundRobin


class Costs(Flow):
    """A flow with costs that wait; `more` is added again each time one is sent."""

    def __init__(self, name, weight=1.0, costs=(), more=None):
        super().__init__(weight)
        self.name, self.costs, self.more = name, list(costs), more

    @property
    def ready(self):
        return bool(self.costs)


def served(turns, flows, count):
    """Let `count` costs through; return the names in their order."""
    order = []
    for _ in range(count):
        for flow in flows:
            if flow.ready:
                turns.enter(flow)
        flow = turns.next()
        if flow is None:
            break
        cost = flow.costs.pop(0)
        if flow.more is not None:
            flow.costs.append(flow.more)
        turns.charge(flow, cost)
        order.append((flow.name, cost))
    return order


def share(order, name):
    total = Counter()
    for each, cost in order:
        total[each] += cost
    return total[name] / sum(total.values())


def busy(name, weight=1.0, cost=1.0):
    return Costs(name, weight, [cost], more=cost)


def test_nothing_is_next_without_flows():
    assert RoundRobin().next() is None


def test_busy_flows_of_equal_weight_get_the_same():
    order = served(RoundRobin(), [busy("a"), busy("b"), busy("c")], 300)

    assert Counter(name for name, _ in order) == {"a": 100, "b": 100, "c": 100}


def test_the_share_is_by_cost_and_not_by_requests():
    order = served(RoundRobin(), [busy("large", cost=16), busy("small", cost=1)], 3400)

    assert share(order, "large") == pytest.approx(0.5, abs=0.01)


@pytest.mark.parametrize("weight", [0.01, 0.2, 3, 500])
def test_the_share_is_in_proportion_to_the_weight(weight):
    order = served(RoundRobin(), [busy("a", weight), busy("b")], 20_000)

    assert share(order, "a") == pytest.approx(weight / (weight + 1), rel=0.05)


def test_a_flow_that_was_not_busy_goes_first_once():
    turns, flood = RoundRobin(), Costs("flood", costs=[1] * 50)
    served(turns, [flood], 10)

    light = Costs("light", costs=[1, 1, 1])
    order = served(turns, [flood, light], 5)

    names = [name for name, _ in order]
    assert names[0] == "light"
    assert names.count("light") in (2, 3)


def test_many_flows_that_pause_after_each_request_do_not_starve_a_busy_one():
    turns, flood = RoundRobin(), busy("flood")
    lights = [Costs(f"light{i}") for i in range(5)]
    order = []
    for _ in range(200):
        for light in lights:
            light.costs = light.costs or [1]
        order += served(turns, [flood, *lights], 6)

    assert share(order, "flood") >= 1 / 6 - 0.01


def test_a_correction_is_paid_in_later_turns():
    turns = RoundRobin()
    a, b = busy("a"), busy("b")
    served(turns, [a, b], 10)

    turns.correct(a, 20)
    order = served(turns, [a, b], 30)

    assert Counter(name for name, _ in order)["b"] == pytest.approx(25, abs=2)


def test_a_debt_is_forgiven_when_nobody_else_waits():
    turns, a = RoundRobin(), busy("a")
    turns.correct(a, 1e9)

    assert len(served(turns, [a], 10)) == 10


def test_what_a_flow_sends_without_a_turn_is_forgiven_too_when_nobody_waits():
    turns, a = RoundRobin(), busy("a")
    for _ in range(1000):
        turns.charge(a, 1)

    turns.clear()

    assert a.credits == 0 and not a.listed


def test_a_flow_without_work_leaves_the_lists():
    turns = RoundRobin()
    flows = [Costs(str(i), costs=[1]) for i in range(100)]
    served(turns, flows, 100)

    assert turns.next() is None
    assert not any(flow.listed for flow in flows)
