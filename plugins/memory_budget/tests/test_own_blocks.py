"""Blocks of their own while a load runs."""

from core_memory_budget.own_blocks import LEAST, OwnBlocks

from core.system import heap

KEPT = {"MALLOC_MMAP_THRESHOLD_": str(heap.LARGEST)}


def test_the_threshold_is_lowered_for_as_long_as_any_load_runs():
    calls = []
    blocks = OwnBlocks(lambda *call: calls.append(call), KEPT)

    with blocks.during_a_load():
        with blocks.during_a_load():
            pass
        assert calls == [(-3, LEAST)]

    assert calls == [(-3, LEAST), (-3, heap.LARGEST)]


def test_the_threshold_of_an_operator_stays():
    calls = []

    with OwnBlocks(
        lambda *call: calls.append(call), {"MALLOC_MMAP_THRESHOLD_": "1"}
    ).during_a_load():
        pass

    assert calls == []
