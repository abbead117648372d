"""How long a worker that has ended waits before it is started again."""

import pytest
from core_workers.delays import Delays


class Clock:
    now_s = 1000.0

    def __call__(self):
        return self.now_s


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def delays(clock):
    return Delays(clock)


def test_who_ends_again_and_again_waits_longer_each_time_up_to_a_bound(delays):
    found = [delays.next_s(1) for _ in range(12)]

    assert found[:4] == [0.1, 0.2, 0.4, 0.8]
    assert found[-2:] == [30, 30]


def test_each_worker_has_its_own(delays):
    delays.next_s(1)

    assert delays.next_s(2) == 0.1


def test_who_has_served_for_long_begins_anew(delays, clock):
    delays.next_s(1)
    delays.up(1)
    clock.now_s += 61

    assert delays.next_s(1) == 0.1


def test_who_has_served_for_a_moment_does_not(delays, clock):
    delays.next_s(1)
    delays.up(1)
    clock.now_s += 59

    assert delays.next_s(1) == 0.2


def test_the_time_that_a_start_takes_is_no_service(delays, clock):
    delays.up(1)
    clock.now_s += 61
    delays.next_s(1)

    clock.now_s += 600

    assert delays.next_s(1) == 0.2
