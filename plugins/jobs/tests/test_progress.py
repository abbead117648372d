"""The line that `core run` shows on a terminal."""

import io

import pytest
from core_jobs.offline import progress
from core_jobs.offline.progress import Progress, duration

ERASED = "\r\x1b[K"


class Terminal(io.StringIO):
    def isatty(self):
        return True


class Clock:
    now_s = 100.0

    def monotonic(self):
        return self.now_s


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(progress, "time", clock)
    monkeypatch.setenv("COLUMNS", "200")
    return clock


def test_nothing_is_written_to_a_pipe_or_a_file(clock):
    stream = io.StringIO()
    show = Progress(1000, stream)

    show(1, 10, 0)
    show.clear()

    assert stream.getvalue() == ""


def test_a_terminal_shows_share_rate_time_left_and_failures(clock):
    stream = Terminal()
    show = Progress(1000, stream)

    show(0, 0, 0)
    clock.now_s += 5
    show(2000, 250, 3)

    assert stream.getvalue().split(ERASED)[1:] == [
        "0 requests, 0 %",
        "2,000 requests, 25 %, 400/s, 15 s left, 3 failed",
    ]


def test_without_a_known_size_there_is_neither_share_nor_time_left(clock):
    stream = Terminal()
    show = Progress(0, stream)

    show(0, 0, 0)
    clock.now_s += 1
    show(10, 80, 0)

    assert stream.getvalue().endswith(f"{ERASED}10 requests, 10/s")


def test_the_line_changes_five_times_a_second_at_most(clock):
    stream = Terminal()
    show = Progress(1000, stream)

    for done in range(11):  # a second
        show(done, done, 0)
        clock.now_s += 0.1

    assert stream.getvalue().count(ERASED) <= 6


def test_the_rate_is_that_of_the_last_ten_seconds(clock):
    stream = Terminal()
    show = Progress(0, stream)

    for second in range(60):
        show(min(second, 30) * 100, second, 0)  # nothing is done in the second half minute
        clock.now_s += 1

    assert "/s" not in stream.getvalue().split(ERASED)[-1]
    assert "100/s" in stream.getvalue().split(ERASED)[30]


def test_the_line_is_as_wide_as_the_terminal_at_most(clock, monkeypatch):
    monkeypatch.setenv("COLUMNS", "8")
    stream = Terminal()

    Progress(1000, stream)(123, 10, 0)

    assert stream.getvalue() == f"{ERASED}123 req"


def test_the_line_is_removed_at_the_end_if_there_is_one(clock):
    stream = Terminal()
    show = Progress(1000, stream)

    show.clear()
    assert stream.getvalue() == ""

    show(1, 10, 0)
    show.clear()
    assert stream.getvalue().endswith(ERASED)


@pytest.mark.parametrize(
    ("time_s", "text"),
    [(0.4, "0 s"), (89, "89 s"), (90, "2 min"), (5399, "90 min"), (5400, "1.5 h")],
)
def test_times_have_the_unit_that_people_would_use(time_s, text):
    assert duration(time_s) == text
