"""How much a caller may do, in a time that the tests give."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.access.limits import Allowance, Allowances, Limits
from core.errors import Exhausted, Kind


class Clock:
    def __init__(self):
        self.s = 1000.0

    def __call__(self):
        return self.s


@pytest.fixture
def clock():
    return Clock()


def taken(allowance, most=1000):
    """How many requests get in now, one after another."""
    for count in range(most):
        try:
            allowance.enter()
        except Exhausted:
            return count
        allowance.leave()
    return most


def test_a_full_bucket_lets_a_burst_in_and_fills_with_the_rate(clock):
    allowance = Allowance("caller 'a'", Limits(rate=10, burst=25), clock)

    assert taken(allowance) == 25
    clock.s += 0.5
    assert taken(allowance) == 5
    clock.s += 3600
    assert taken(allowance) == 25


def test_without_a_burst_it_is_the_rate_and_at_least_one(clock):
    assert taken(Allowance("a", Limits(rate=10), clock)) == 10
    assert taken(Allowance("a", Limits(rate=0.1), clock)) == 1


def test_a_refusal_says_who_which_limit_and_when_to_come_again(clock):
    allowance = Allowance("caller 'a'", Limits(rate=0.25, burst=1), clock)
    allowance.enter()
    clock.s += 1

    with pytest.raises(Exhausted) as caught:
        allowance.enter()

    assert caught.value.kind is Kind.EXHAUSTED
    assert (
        caught.value.message == "caller 'a' has sent more than its limit of 0.25 requests a second"
    )
    assert caught.value.retry_after_s == pytest.approx(3.0)


def test_so_many_requests_are_in_flight_and_no_more(clock):
    allowance = Allowance("caller 'a'", Limits(concurrent=2), clock)
    allowance.enter()
    allowance.enter()

    with pytest.raises(Exhausted, match="has 2 requests in flight, its limit is 2"):
        allowance.enter()
    allowance.leave()
    allowance.enter()


def test_a_request_that_is_refused_for_those_in_flight_costs_no_token(clock):
    allowance = Allowance("a", Limits(rate=1, burst=2, concurrent=1), clock)
    allowance.enter()
    for _ in range(5):
        with pytest.raises(Exhausted):
            allowance.enter()
    allowance.leave()

    allowance.enter()  # the second token is there


@given(
    st.floats(0.01, 1000),
    st.floats(0, 100),
    st.lists(st.floats(0, 10), max_size=50),
)
def test_no_caller_gets_more_than_burst_and_rate_times_time(rate, burst, pauses):
    clock = Clock()
    limits = Limits(rate=rate, burst=burst)
    allowance = Allowance("a", limits, clock)

    count = 0
    for pause in pauses:
        clock.s += pause
        count += taken(allowance, most=30)

    assert count <= limits.depth + rate * sum(pauses) + 1e-6 * len(pauses)


def test_callers_have_allowances_of_their_own_and_keep_them(clock):
    allowances = Allowances(clock)
    limits = Limits(rate=1)

    assert allowances.of("a", limits) is allowances.of("a", limits)
    assert allowances.of("a", limits) is not allowances.of("b", limits)
    assert allowances.of("a", Limits()) is None


def test_of_many_callers_those_are_forgotten_that_would_be_as_new(clock):
    allowances = Allowances(clock, most=3)
    limits = Limits(rate=1)
    busy = allowances.of("busy", limits)
    busy.enter()
    for name in "abcdef":
        allowances.of(name, limits)

    assert allowances.of("busy", limits) is busy
    assert len(allowances._found) == 3


def test_memory_is_bounded_even_if_nobody_is_idle(clock):
    allowances = Allowances(clock, most=3)
    for number in range(100):
        allowances.of(str(number), Limits(concurrent=1)).enter()

    assert len(allowances._found) == 3
