"""Which requests make the next batch: a pure decision."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.pipeline.batching.batcher import BatchLimits, choose
from core.pipeline.batching.queue import QueuedRequest
from core.request import InferenceRequest
from core.response import Reply

MS = 1_000_000


def waiting(*rows, key=None, arrived_ns=0):
    found = []
    for size in rows:
        request = InferenceRequest("m", {})
        request.rows = size
        request.arrival_ns = arrived_ns
        found.append(QueuedRequest(request, Reply(request), key))
    return found


def limits(most_rows=8, preferred=(8,), delay_ms=0):
    return BatchLimits(most_rows, tuple(preferred), delay_ms * MS, alone=False)


def test_without_batching_every_request_runs_alone():
    assert choose(waiting(5, 5), BatchLimits(), 0) == (1, 0)


def test_without_a_delay_all_waiting_requests_run_at_once():
    assert choose(waiting(1, 1, 1), limits(), 0) == (3, 0)


def test_a_batch_never_exceeds_the_most_rows():
    assert choose(waiting(3, 3, 3), limits(), 0) == (2, 0)


def test_a_request_is_never_split():
    assert choose(waiting(5, 5), limits(), 0) == (1, 0)


def test_a_request_as_large_as_the_batch_runs_alone():
    assert choose(waiting(8, 1), limits(delay_ms=5), 0) == (1, 0)


def test_a_batch_below_a_preferred_size_waits_until_the_oldest_request_is_late():
    assert choose(waiting(1, 1, arrived_ns=7), limits(preferred=[4], delay_ms=5), 8) == (
        0,
        7 + 5 * MS,
    )


def test_a_late_request_runs_with_all_requests_that_fit():
    assert choose(waiting(1, 1, 1), limits(preferred=[4], delay_ms=5), 5 * MS) == (3, 0)


def test_a_request_of_a_higher_level_does_not_make_the_oldest_wait_again():
    line = waiting(1, arrived_ns=4 * MS) + waiting(1, arrived_ns=1 * MS)

    assert choose(line, limits(delay_ms=5), 5 * MS) == (0, 6 * MS)
    assert choose(line, limits(delay_ms=5), 6 * MS) == (2, 0)


def test_a_preferred_size_runs_at_once():
    assert choose(waiting(1, 1, 1, 1), limits(preferred=[4], delay_ms=5), 0) == (4, 0)


def test_the_largest_preferred_size_that_is_reached_runs():
    assert choose(waiting(*[1] * 7), limits(preferred=[2, 4], delay_ms=5), 0) == (4, 0)


def test_requests_that_would_exceed_the_largest_preferred_size_do_not_wait():
    assert choose(waiting(3, 3), limits(preferred=[4], delay_ms=5), 0) == (1, 0)


def test_requests_of_another_shape_end_the_batch():
    mixed = waiting(1, 1, key="a") + waiting(1, key="b")

    assert choose(mixed, limits(delay_ms=5), 0) == (2, 0)


@given(
    st.lists(st.integers(1, 8), min_size=1, max_size=20),
    st.sets(st.integers(1, 8), max_size=3),
    st.integers(0, 3),
    st.integers(0, 4),
)
def test_a_chosen_batch_always_fits_and_a_late_one_is_always_chosen(rows, preferred, delay, now):
    found = limits(preferred=preferred or {8}, delay_ms=delay)

    count, again = choose(waiting(*rows), found, now * MS)

    assert sum(rows[:count]) <= 8 or count == 1
    assert bool(count) != bool(again)
    if now >= delay:
        assert count
    if again:
        assert again == delay * MS


@pytest.mark.parametrize("rows", [0, 1])
def test_an_empty_batch_counts_as_one_row(rows):
    assert choose(waiting(*[rows] * 9), limits(), 0) == (8, 0)
