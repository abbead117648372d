"""A server in the process of the tests, with functions bound to it."""

import threading

import numpy as np
import pytest

import core

PATIENCE_S = 30.0  # what takes longer counts as lost

ROW = {"inputs": {"x": ("FP32", [-1])}, "outputs": {"y": ("FP32", [-1])}}


@pytest.fixture
def server():
    with core.Server() as started:
        yield started


@pytest.fixture
def x():
    return np.arange(4, dtype=np.float32)


class Gate:
    """A function that waits in the middle of an execution, as long as a test wants it to.

    began   set when an execution has begun
    """

    def __init__(self):
        self.began = threading.Event()
        self.batches = []
        self._open = threading.Event()

    def __call__(self, x):
        self.batches.append(x.copy())
        self.began.set()
        assert self._open.wait(PATIENCE_S)
        return x

    def open(self):
        self._open.set()


@pytest.fixture
def gate():
    made = Gate()
    yield made
    made.open()


class UntilCancelled:
    """A function that runs until its request is cancelled."""

    def __init__(self):
        self.began = threading.Event()
        self.cancelled = threading.Event()
        self.requests = []

    def __call__(self, x, requests):
        self.requests.extend(requests)
        self.began.set()
        pause = threading.Event()
        while not requests[0].cancelled:
            pause.wait(0.001)
        self.cancelled.set()
        return x


@pytest.fixture
def endless(server):
    """Such a function, bound as "endless"."""
    made = UntilCancelled()
    server.bind("endless", made, requests=True, **ROW)
    return made


class Asking(threading.Thread):
    """A thread that sends a request; `result` is the response or the error."""

    def __init__(self, function):
        super().__init__()
        self._function = function
        self.start()

    def run(self):
        try:
            self._result = self._function()
        except Exception as error:
            self._result = error

    @property
    def result(self):
        self.join(PATIENCE_S)
        return self._result


def until(true):
    """Wait for what another thread brings about."""
    pause = threading.Event()
    for _ in range(round(PATIENCE_S / 0.001)):
        if true():
            return
        pause.wait(0.001)
    raise AssertionError("it did not come about")
