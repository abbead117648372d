"""The ideal batcher: the batches that arrivals allow, and late batches."""

import json

import pytest

from benchmarks.batching.__main__ import Case, find
from benchmarks.batching.ideal import Execution, ideal_batches, mean_batch, overshoots_ns


def executions(*batches, busy=10, start=100):
    """One instance's batches with these arrivals, one after another."""
    found = []
    for arrivals in batches:
        found.append(Execution(0, start, start + busy, arrivals))
        start += busy
    return found


@pytest.mark.parametrize(
    ("arrivals", "most", "delay", "sizes"),
    [
        ([0, 1, 2, 3], 8, 0, [1, 3]),  # the first finds an idle instance, the others wait for it
        ([0, 1, 2, 3], 8, 5, [4]),  # all come within the delay of the first
        ([0, 1, 2, 3], 2, 5, [2, 2]),
        ([0, 6, 7, 30], 8, 5, [1, 2, 1]),
        ([0, 0, 0, 0], 3, 0, [3, 1]),
        ([], 8, 5, []),
    ],
)
def test_the_ideal_batches_of_some_arrivals(arrivals, most, delay, sizes):
    assert ideal_batches(executions(arrivals), most, delay, 1) == sizes


def test_two_instances_take_what_one_would_let_wait():
    assert ideal_batches(executions([0, 1, 2, 3]), 8, 0, 1) == [1, 3]
    assert ideal_batches(executions([0, 1, 2, 3]), 8, 0, 2) == [1, 1, 2]


def test_a_batch_is_late_only_if_its_instance_waited_for_it():
    idle = Execution(0, 107, 120, [100, 101])  # due at 105
    busy = Execution(0, 125, 130, [110])  # due at 115, but the instance was busy until 120
    other = Execution(1, 125, 130, [121])  # on another one; earlier than its time: it was full
    assert overshoots_ns([busy, other, idle], 5) == [2, 0]


def test_a_finding_has_its_part_of_the_ideal():
    record = {"executions": [(0, 5_000, 6_000, [0]), (0, 7_000, 8_000, [1])], "late_ns": [2_000]}
    found = find(Case(8, 5), json.loads(json.dumps(record)))
    assert (found.batch, found.possible, found.efficiency) == (1.0, 2.0, 0.5)
    assert found.late_p50 == 2.0


def test_no_execution_is_an_efficiency_of_zero():
    assert (
        mean_batch([]) == 0 and find(Case(8, 0), {"executions": [], "late_ns": []}).efficiency == 0
    )
