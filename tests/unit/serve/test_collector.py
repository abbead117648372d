"""The threshold of the garbage collector in a server process."""

import gc

import pytest

from core import process


@pytest.fixture(autouse=True)
def threshold(monkeypatch):
    monkeypatch.setattr(process.heap, "keep", lambda: None)
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)


async def young():
    return gc.get_threshold()[0]


def test_a_batch_of_requests_does_not_bring_the_collector():
    gc.set_threshold(700, 10, 10)

    assert process.run_on_loop(young()) == process.YOUNG


@pytest.mark.parametrize("chosen", [0, 50_000])
def test_higher_or_disabled_gc_thresholds_are_kept(chosen):
    gc.set_threshold(chosen)

    assert process.run_on_loop(young()) == chosen
