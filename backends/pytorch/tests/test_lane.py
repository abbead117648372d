"""Lane: a thread makes calls in order, and holds nothing of them."""

import gc
import threading
import weakref

import pytest
from backend_pytorch.lane import Lane


@pytest.fixture
def lane():
    found = Lane("lane")
    yield found
    found.close()


def test_calls_are_made_in_order_on_a_thread_of_their_own(lane):
    made, done = [], threading.Event()

    for number in range(100):
        lane.put(lambda *given: made.append((threading.current_thread().name, *given)), number)
    lane.put(done.set)

    assert done.wait(10)
    assert made == [("lane", number) for number in range(100)]


def test_calls_of_several_threads_do_not_overlap(lane):
    running, most, done = [], [], threading.Semaphore(0)

    def call():
        running.append(1)
        most.append(len(running))
        running.pop()
        done.release()

    threads = [
        threading.Thread(target=lambda: [lane.put(call) for _ in range(50)]) for _ in range(4)
    ]
    for each in threads:
        each.start()

    assert all(done.acquire(timeout=10) for _ in range(200))
    assert set(most) == {1}


def test_a_call_that_was_made_keeps_nothing(lane):
    class Batch:
        pass

    batch, done = Batch(), threading.Event()
    seen = weakref.ref(batch)

    lane.put(lambda given: None, batch)
    lane.put(done.set)  # the first call has ended by then
    assert done.wait(10)
    del batch
    gc.collect()

    assert seen() is None


def test_closing_makes_the_calls_that_wait():
    lane, made, gate = Lane("lane"), [], threading.Event()
    lane.put(gate.wait)
    lane.put(made.append, 1)
    threading.Timer(0.05, gate.set).start()

    lane.close()

    assert made == [1] and "lane" not in [each.name for each in threading.enumerate()]
