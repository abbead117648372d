"""The tokens of a caller: what a bucket admits, in virtual time."""

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import Exhausted, Kind
from frontends.shared.access.bucket_table import BucketTable
from frontends.shared.access.limits import Allowances, Limits


class Clock:
    def __init__(self):
        self.s = 1000.0

    def __call__(self):
        return self.s


@pytest.fixture
def clock():
    return Clock()


def bucket_of(tokens, clock, table=None, name="a"):
    return Allowances(clock, table).of(name, Limits(tokens=tokens), known=True).usage


def wait_s(bucket):
    """Return the seconds until a request may begin; 0 if it may now."""
    try:
        bucket.check()
    except Exhausted as error:
        return error.retry_after_s
    return 0.0


def test_a_caller_has_the_tokens_of_a_minute_after_a_pause(clock):
    bucket = bucket_of(600, clock)

    bucket.charge(599)
    assert wait_s(bucket) == 0
    bucket.charge(1)
    assert wait_s(bucket) == pytest.approx(0.1)


def test_a_request_may_cost_more_than_is_left_and_the_next_one_waits(clock):
    bucket = bucket_of(600, clock)

    bucket.charge(1200)  # two minutes of tokens

    assert wait_s(bucket) == pytest.approx(60.1)
    clock.s += 60
    assert wait_s(bucket) == pytest.approx(0.1)
    clock.s += 0.1001
    assert wait_s(bucket) == 0


def test_a_check_takes_nothing(clock):
    bucket = bucket_of(1, clock)

    assert [wait_s(bucket) for _ in range(5)] == [0] * 5
    bucket.charge(1)
    assert wait_s(bucket) == pytest.approx(60)


def test_a_refusal_names_the_caller_the_limit_and_the_wait(clock):
    bucket = bucket_of(60, clock)
    bucket.charge(71)

    with pytest.raises(Exhausted) as caught:
        bucket.check()

    assert caught.value.kind is Kind.EXHAUSTED
    assert caught.value.message == (
        "caller 'a' has used up its limit of 60 tokens a minute; it has tokens again in 12 s"
    )
    assert caught.value.retry_after_s == pytest.approx(12)


@pytest.mark.parametrize("tokens", [0, -1])
def test_unknown_tokens_cost_nothing(clock, tokens):
    bucket = bucket_of(1, clock)
    bucket.charge(tokens)
    assert wait_s(bucket) == 0


def test_an_absurd_cost_does_not_overflow_and_is_paid_off_in_the_end(clock):
    bucket = bucket_of(1, clock)

    for _ in range(100):
        bucket.charge(10**15)

    assert 10**8 < wait_s(bucket) < 10**10
    clock.s += 4e9
    assert wait_s(bucket) == 0


def test_tokens_do_not_count_in_the_rate_and_requests_cost_no_tokens(clock):
    allowance = Allowances(clock).of("a", Limits(rate=1, burst=3, tokens=10), known=True)

    allowance.usage.charge(10)
    for _ in range(3):
        allowance.leave(allowance.enter())

    with pytest.raises(Exhausted, match="requests a second"):
        allowance.enter()
    clock.s += 6
    assert wait_s(allowance.usage) == 0


def test_a_caller_without_the_limit_has_no_bucket(clock):
    assert Allowances(clock).of("a", Limits(rate=1), known=True).usage is None


def test_all_workers_together_spend_the_tokens_of_one_limit(clock):
    file = BucketTable.create_file(2)
    one, two = (bucket_of(100, clock, BucketTable(file, 2, worker)) for worker in range(2))

    one.charge(60)
    two.charge(60)

    assert wait_s(one) == wait_s(two) == pytest.approx(12.6)
    os.close(file)


def test_callers_have_tokens_of_their_own_also_with_the_same_limit(clock):
    table = BucketTable()
    first, second = (bucket_of(10, clock, table, name) for name in "ab")

    first.charge(10)

    assert wait_s(first) > 0
    assert wait_s(second) == 0


STEPS = st.lists(
    st.tuples(st.floats(0, 100), st.integers(0, 5000)), min_size=1, max_size=60
)  # a pause in seconds, and the cost of a request that begins and ends after it


@given(st.integers(1, 100_000), STEPS)
def test_a_caller_gets_a_minute_and_the_time_in_tokens_and_one_cost_more_at_most(tokens, steps):
    clock = Clock()
    bucket = bucket_of(tokens, clock)

    spent = largest = 0
    for pause, cost in steps:
        clock.s += pause
        if not wait_s(bucket):
            bucket.charge(cost)
            spent, largest = spent + cost, max(largest, cost)

    minutes = 1 + (clock.s - 1000) / 60
    assert spent <= tokens * minutes + largest + 1


@given(st.integers(1, 100_000), STEPS)
def test_the_level_is_that_of_a_bucket_computed_in_fractions(tokens, steps):
    """The oracle keeps the level itself; the bucket keeps the time at which it is full."""
    clock = Clock()
    bucket = bucket_of(tokens, clock)

    level = float(tokens)
    for pause, cost in steps:
        clock.s += pause
        level = min(tokens, level + pause * tokens / 60)
        expected = max(0.0, (1 - level) * 60 / tokens)
        assert wait_s(bucket) == pytest.approx(expected, abs=1e-4)
        bucket.charge(cost)
        level -= cost
