"""StepLoop: which generations share a step. The pipeline and the generations are those of the test."""

import threading
import time

import pytest

TIMEOUT_S = 10.0


class Steps:
    """A pipeline that notes in `steps` how many generations began with each step."""

    def __init__(self):
        self.steps = []
        self.added = 0
        self.stepped = threading.Event()
        self.go_on = threading.Event()

    def is_busy(self):
        return True

    def step(self):
        if self.added:
            self.steps.append(self.added)
        self.added = 0
        self.stepped.set()
        assert self.go_on.wait(TIMEOUT_S)


class Some:
    """A generation that ends after so many steps."""

    def __init__(self, pipeline, steps=1, over=False):
        self.over = over
        self._left = steps
        self._pipeline = pipeline
        self.ended = threading.Event()

    def begin(self):
        self._pipeline.added += 1

    def read(self):
        self._left -= 1
        if not self._left:
            self.over = True
            self.ended.set()

    def cancel(self):
        self.over = True

    def drop(self):
        pass


@pytest.fixture
def pipeline():
    return Steps()


@pytest.fixture
def loop(pipeline, monkeypatch):
    pytest.importorskip("openvino_genai")
    from backend_openvino_genai import loop

    monkeypatch.setattr(loop, "MOST_S", 60.0)
    made = loop.StepLoop(pipeline, "m")
    yield made
    pipeline.go_on.set()
    made.close()


def test_announced_generations_share_the_first_step(loop, pipeline):
    pipeline.go_on.set()
    assert loop.announce() is True
    assert loop.announce() is False
    first, second = Some(pipeline), Some(pipeline)

    loop.start(first)
    assert not pipeline.stepped.wait(0.05)
    loop.start(second)

    assert first.ended.wait(TIMEOUT_S)
    assert second.ended.wait(TIMEOUT_S)
    assert pipeline.steps == [2]


def test_one_that_was_cancelled_on_its_way_holds_up_no_other(loop, pipeline):
    pipeline.go_on.set()
    loop.announce(), loop.announce()
    first = Some(pipeline)
    loop.start(first)

    loop.start(Some(pipeline, over=True))

    assert first.ended.wait(TIMEOUT_S)
    assert pipeline.steps == [1]


def test_a_pipeline_that_works_waits_for_none(loop, pipeline):
    loop.announce()
    long, short = Some(pipeline, steps=10**9), Some(pipeline)
    loop.start(long)
    assert pipeline.stepped.wait(TIMEOUT_S)
    loop.announce(), loop.announce()

    loop.start(short)
    pipeline.go_on.set()

    assert short.ended.wait(TIMEOUT_S)


def test_the_first_step_waits_for_a_bounded_time(pipeline, loop, monkeypatch):
    monkeypatch.setattr("backend_openvino_genai.loop.MOST_S", 0.02)
    pipeline.go_on.set()
    loop.announce(), loop.announce()
    first = Some(pipeline)
    begun = time.monotonic()

    loop.start(first)

    assert first.ended.wait(TIMEOUT_S)
    assert time.monotonic() - begun >= 0.02
    assert loop.counts() == (1, 0)


def test_the_end_of_the_loop_waits_for_no_announced_generation(loop, pipeline):
    pipeline.go_on.set()
    loop.announce(), loop.announce()
    loop.start(Some(pipeline))

    begun = time.monotonic()
    loop.close()

    assert time.monotonic() - begun < TIMEOUT_S
