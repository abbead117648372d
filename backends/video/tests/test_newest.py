"""The policy `latest`, the times of frames, and pauses between tries, without a film."""

import threading
import time
from fractions import Fraction
from types import SimpleNamespace

import pytest
from backend_video import backoff
from backend_video.backoff import Backoff
from backend_video.clock import Clock
from backend_video.instance import VideoInstance
from backend_video.newest import Newest
from backend_video.source import Seen
from backend_video.stop import Stop, Stopped

from core.request import InferenceRequest

STEP = 40_000_000


def seen(index, **more):
    return Seen(None, index, index * STEP, **more)


def test_a_slow_reader_gets_the_newest_frame_and_the_number_of_the_others(eventually):
    given = []

    def frames():
        for index in range(5):
            yield seen(index, gap_ns=7 if index == 2 else 0, notice="lost" if index == 2 else "")
            given.append(index)

    newest = Newest(frames(), Stop())
    eventually(lambda: len(given) == 5)

    found = newest.take()

    assert (found.index, found.dropped, found.gap_ns, found.notice) == (4, 4, 7, "lost")
    assert newest.take() is None
    newest.close()


def test_a_reader_that_waits_gets_each_frame_and_then_the_error():
    go = Stop()

    def frames():
        yield seen(0)
        while not go.is_set:
            pass
        yield seen(1)
        raise ValueError("damaged")

    newest = Newest(frames(), Stop())
    assert newest.take().index == 0
    go.set()
    assert newest.take().index == 1
    with pytest.raises(ValueError, match="damaged"):
        newest.take()
    newest.close()


def latest(frames, request, stop, called=None):
    """Return the frames of an instance with the policy `latest`, whose event loop calls at once.

    called   an event that is set after a call
    """
    instance = VideoInstance()

    def call_now(call, *given):
        call(*given)
        if called is not None:
            called.set()

    instance.loop = SimpleNamespace(call_soon_threadsafe=call_now)
    return instance._paced(frames, SimpleNamespace(policy="latest"), True, request, stop)


def test_a_client_that_is_behind_soon_after_a_frame_gets_the_newest_one_next(eventually):
    """The thread of the instance is ahead of the loop, which learns only then that the client is behind."""
    go, given, found = threading.Event(), [], []

    def frames():
        yield seen(0)
        go.wait()
        for index in range(1, 6):
            yield seen(index)
            stop.wait(0.05)
            given.append(index)

    stop, request = Stop(), InferenceRequest("frames", {})
    paced = latest(frames(), request, stop)
    found.append(next(paced).index)
    reader = threading.Thread(target=lambda: found.append(next(paced).index))
    reader.start()
    time.sleep(0.05)  # it waits for a frame
    request.pause()
    go.set()
    eventually(lambda: len(given) == 5)
    assert found == [0]
    request.resume()
    reader.join()
    paced.close()

    assert found == [0, 5]


def test_a_client_that_is_behind_can_cancel(eventually):
    stop, request, ended = Stop(), InferenceRequest("frames", {}), threading.Event()
    request.on_cancel(stop.set)
    request.pause()
    waits = threading.Event()
    paced = latest((seen(index) for index in range(3)), request, stop, waits)

    def read():
        with pytest.raises(Stopped):
            next(paced)
        ended.set()

    threading.Thread(target=read).start()
    assert waits.wait(10)
    assert not ended.is_set()
    request.cancel()

    assert ended.wait(10)


def test_closing_ends_the_thread_and_the_source():
    stop, ended = Stop(), []

    def frames():
        try:
            for index in range(1_000_000):
                stop.wait(0.001)
                yield seen(index)
        finally:
            ended.append(True)

    newest = Newest(frames(), stop)
    newest.take()
    newest.close()

    assert ended == [True]
    with pytest.raises(Stopped):
        while True:
            newest.take()


def times(clock, *stamps):
    frames = [SimpleNamespace(pts=each, time_base=Fraction(1, 1000)) for each in stamps]
    return [clock.time_of(each, STEP) // 1_000_000 for each in frames]


def test_times_begin_at_0_and_never_go_back():
    assert times(Clock(), 5000, 5040, 5080) == [0, 40, 80]
    assert times(Clock(), 5000, 5040, 100, 140) == [0, 40, 80, 120]
    assert times(Clock(), None, None, None) == [0, 40, 80]


def test_the_time_without_a_source_is_added():
    clock = Clock()
    assert times(clock, 0, 40) == [0, 40]

    clock.reconnected(500_000_000)

    assert times(clock, 90_000, 90_040) == [540, 580]


def test_pauses_double_up_to_a_limit_and_end(monkeypatch):
    now, pauses = [0.0], []

    def wait(seconds):
        pauses.append(seconds)
        now[0] += seconds

    monkeypatch.setattr(backoff.time, "monotonic", lambda: now[0])
    tries = Backoff(20, SimpleNamespace(wait=wait))

    while tries.wait():
        pass

    assert pauses[:6] == pytest.approx([0.1, 0.2, 0.4, 0.8, 1.6, 3.2])
    assert max(pauses) == 5.0
    assert sum(pauses) == pytest.approx(20)
    assert tries.tries == len(pauses)


def test_pauses_end_with_the_request():
    stop = Stop()
    stop.set()
    with pytest.raises(Stopped):
        Backoff(20, stop).wait()
