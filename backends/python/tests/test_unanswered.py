"""Lost response senders are found while a request waits; without one no search runs."""

import gc
import threading
import time

import pytest
from backend_python.api.unanswered import Unanswered, generation, unanswered

from core import CoreError

PATIENCE_S = 20


def until(condition):
    end = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.005)


def test_the_search_becomes_rarer_without_answers():
    found = {looks: generation(looks) for looks in range(1, 200)}

    assert {looks: oldest for looks, oldest in found.items() if oldest is not None} == {
        1: 1, 10: 2, 20: 2, 40: 2, 80: 2, 160: 2,
    }  # fmt: skip


def test_the_thread_ends_and_starts_again():
    each = Unanswered(period_s=0.001)
    for _ in range(2):
        each.add(1)
        assert each._watched
        each.remove(1)
        each.remove(1)
        until(lambda: not each._watched)


def test_senders_that_answer_cause_no_search():
    each = Unanswered(period_s=0.01)
    searches = []
    gc.callbacks.append(lambda phase, info: searches.append(info["generation"]))
    try:
        each.add(1)
        end = time.monotonic() + 0.3
        while time.monotonic() < end:
            each.gave(1)
            time.sleep(0.001)
        by_itself = [generation for generation in searches if generation == 2]
    finally:
        gc.callbacks.pop()
        each.remove(1)

    assert by_itself == []


async def test_a_sender_in_an_old_cycle_is_found(serve, monkeypatch):
    import numpy as np

    monkeypatch.setattr(unanswered, "_period_s", 0.01)
    source = """
    def execute(self, requests):
        import gc
        cycle = [requests[0].get_response_sender()]
        cycle.append(cycle)
        requests.clear()
        gc.collect()  # from now on only a search of all objects finds it
    """
    model = await serve(source, decoupled=True, mode="thread")

    found = [item async for item in model.ask({"x": np.zeros(1, np.float32)})]

    assert [isinstance(item, CoreError) for item in found] == [True]
    assert "dropped the response sender" in found[0].message


@pytest.mark.parametrize("number", [1, 2])
def test_any_thread_may_add_and_remove(number):
    each = Unanswered(period_s=0.001)

    def work(start):
        for sender in range(start, start + 1000):
            each.add(sender)
            each.gave(sender)
            each.remove(sender)

    threads = [threading.Thread(target=work, args=(n * 10_000,)) for n in range(4 * number)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert each._answers == {}
    until(lambda: not each._watched)
