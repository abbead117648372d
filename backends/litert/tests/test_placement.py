"""Where an interpreter runs: on its thread, or on the event loop while runs are short."""

import threading

import numpy as np
import pytest
from backend_litert.instance import LiteRtInstance

from core.errors import CoreError

X = np.array([[1, 2, 3], [4, 5, 6]], np.float32)


@pytest.fixture
def opened(monkeypatch):
    """The instances that were opened."""
    found = []
    actual = LiteRtInstance.open
    monkeypatch.setattr(LiteRtInstance, "open", lambda self: found.append(self) or actual(self))
    return found


def test_an_interpreter_may_run_on_the_loop(serve, doubled, opened):
    serve(doubled())

    assert [each.placement for each in opened] == ["auto"]


def test_an_interpreter_with_a_delegate_stays_on_its_thread(serve, doubled, opened):
    """The library may keep state of the thread that has loaded it, as those for GPUs do."""
    text = 'backend: "litert" parameters { key: "delegate" value { string_value: "/no/such.so" } }'

    with pytest.raises(CoreError, match="there is no such file"):
        serve(doubled(), text)

    assert [each.placement for each in opened] == ["thread"]


def test_another_thread_than_that_of_the_load_may_run_it(serve, doubled, monkeypatch):
    threads = []
    actual = LiteRtInstance.execute
    monkeypatch.setattr(LiteRtInstance, "placement", "inline")
    monkeypatch.setattr(
        LiteRtInstance,
        "execute",
        lambda self, batch: threads.append(threading.current_thread().name) or actual(self, batch),
    )
    model = serve(doubled(), 'backend: "litert" max_batch_size: 4')

    answers = [model(x=X[: 1 + number % 2] * number)["y"] for number in range(5)]

    expected = [2 * X[: 1 + number % 2] * number for number in range(5)]
    assert [each.tolist() for each in answers] == [each.tolist() for each in expected]
    assert threads and not any(each.startswith("m") for each in threads)
