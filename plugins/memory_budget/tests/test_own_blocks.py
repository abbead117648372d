"""Blocks of their own while a load runs."""

import pytest
from core_memory_budget.own_blocks import LEAST, OwnBlocks

from core.system import heap

KEPT = {"MALLOC_MMAP_THRESHOLD_": str(heap.LARGEST)}


@pytest.mark.parametrize(
    "environment", [KEPT, {}]
)  # of core-serve, of a process with a core.Server
def test_the_threshold_is_lowered_for_as_long_as_any_load_runs(environment):
    calls = []
    blocks = OwnBlocks(lambda *call: calls.append(call), environment)

    with blocks.during_a_load():
        with blocks.during_a_load():
            pass
        assert calls == [(-3, LEAST)]

    assert calls == [(-3, LEAST), (-3, heap.LARGEST)]


@pytest.mark.parametrize(
    "environment",
    [{"MALLOC_MMAP_THRESHOLD_": "1"}, {"GLIBC_TUNABLES": "glibc.malloc.mmap_threshold=1"}],
)
def test_the_threshold_of_an_operator_stays(environment):
    calls = []

    with OwnBlocks(lambda *call: calls.append(call), environment).during_a_load():
        pass

    assert calls == []
