"""Time limits for the rest of a request."""

import pytest

from frontends.http.request_timeouts import PROGRESS, RequestTimeouts, UnfinishedRequest


class Slow:
    """A connection whose client has sent `received` bytes of a body."""

    def __init__(self):
        self.received = 1
        self.after = 0.0
        self.given_up = False

    def unfinished(self):
        return None if self.given_up else UnfinishedRequest(True, self.after, self.received)

    def give_up(self):
        self.given_up = True


@pytest.fixture
def slow():
    return Slow()


def end_of(slow, rate, body_rate, most_s=10_000):
    """Return the time limit in seconds for a client that sends `rate` bytes per second; None for no limit."""
    patience = RequestTimeouts([slow], 60, 60, body_rate)
    for second in range(0, most_s, 10):
        slow.received = rate * second
        patience.look(float(second))
        if slow.given_up:
            return second
    return None


def test_an_idle_sender_has_the_timeout(slow):
    assert end_of(slow, 0, 65536) == 60


def test_a_sender_below_the_minimum_progress_has_the_timeout(slow):
    assert end_of(slow, PROGRESS // 60 - 100, 0) == 60


def test_a_sender_with_minimum_progress_has_more_but_limited_time(slow):
    # 60 + n / 65536 seconds for n bytes, of which 2000 come in a second.
    assert end_of(slow, 2000, 65536) == 70


def test_a_sender_at_half_the_rate_has_twice_the_time(slow):
    assert end_of(slow, 32768, 65536) == 120


def test_a_sender_at_the_rate_has_unlimited_time(slow):
    assert end_of(slow, 65536, 65536) is None


def test_without_a_rate_the_progress_is_enough(slow):
    assert end_of(slow, 2000, 0) is None


def test_fast_data_compensates_for_slow_data(slow):
    patience = RequestTimeouts([slow], 60, 60, 65536)
    patience.look(0.0)
    slow.received = 65536 * 100
    for second in range(10, 160, 10):
        slow.received += PROGRESS
        patience.look(float(second))
        assert not slow.given_up
    for second in range(160, 260, 10):
        slow.received += PROGRESS // 6
        patience.look(float(second))
    assert slow.given_up


def test_each_request_has_its_own_time(slow):
    patience = RequestTimeouts([slow], 60, 60, 65536)
    for second in range(0, 1000, 10):
        slow.after = float(second // 50)
        slow.received = 1 + second % 50
        patience.look(float(second))
        assert not slow.given_up
