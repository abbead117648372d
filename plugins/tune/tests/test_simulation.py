"""The simulation follows core's own rule of batches, and the formulas of known queues."""

import numpy as np
import pytest
from core_tune.observation import PROBABILITIES, Observation, Size
from core_tune.queueing.arrivals import Arrivals
from core_tune.queueing.fit import fit
from core_tune.queueing.limit import Traffic, capacity, latency, limit
from core_tune.queueing.machine import Machine
from core_tune.queueing.simulation import simulate
from core_tune.settings import Settings

from core.pipeline.batching.batcher import BatchLimits, choose
from core.pipeline.batching.queue import new_queued_request
from core.request import InferenceRequest
from core.response import Reply


def of_core(due_s, table, limits):
    """Return the latencies by core's `choose`, event by event. Times are whole nanoseconds."""
    due = [round(each * 1e9) for each in due_s]
    entries = []
    for at in due:
        request = InferenceRequest("m", {})
        request.arrival_ns, request.rows = at, 1
        entries.append(new_queued_request(request, Reply(request), None))
    free, ends, first, now = [0] * len(table), {}, 0, 0
    while first < len(due):
        now = max(now, min(free), due[first])
        while True:
            waiting = [e for e, at in zip(entries[first:], due[first:], strict=True) if at <= now]
            count, again = choose(waiting[: limits.most_rows + 1], limits, now)
            if count:
                break
            arriving = [at for at in due if at > now]
            now = min(again, arriving[0]) if arriving else again
        busy = sum(each > now for each in free)
        end = now + round(table[busy][count - 1] * 1e9)
        free[free.index(min(free))] = end
        for number in range(first, first + count):
            ends[number] = end
        first += count
    return np.array([(ends[i] - due[i]) / 1e9 for i in range(len(due))])


@pytest.mark.parametrize("instances", [1, 3])
@pytest.mark.parametrize(
    ("sizes", "most", "delay_us"),
    [
        ((1,), 1, 0),
        ((4,), 4, 0),
        ((4,), 16, 3000),
        ((8,), 8, 500),
        ((2, 4, 8), 16, 3000),
        ((2, 4, 6), 6, 0),
    ],
)
@pytest.mark.parametrize("rate", [100, 400, 1500])
def test_it_makes_the_batches_of_core(instances, sizes, most, delay_us, rate):
    due = np.round(Arrivals(0.99, 0.05).due(rate, 300 / rate, sizes[0]), 9)
    table = np.outer(1 + 0.3 * np.arange(instances), 0.003 + 0.001 * np.arange(1, most + 1))
    preferred = sizes if sizes != (1,) else ()
    limits = BatchLimits(most, preferred, delay_us * 1000, alone=not preferred)

    found = simulate(due, 0.0, table, sizes, delay_us / 1e6)

    assert found == pytest.approx(of_core(due, table.tolist(), limits), abs=1e-8)


RANDOM = Arrivals(0.5, 1e-6)  # no requests at once


def test_the_average_wait_is_that_of_the_formula_of_pollaczek_and_khinchin():
    service, load = 0.002, 0.7
    due = RANDOM.due(load / service, 200_000 * service / load, 3)

    found = simulate(due, 0.0, np.array([[service]]), [1], 0.0).mean()

    assert found == pytest.approx(service + load * service / (2 * (1 - load)), rel=0.03)


def test_requests_pass_the_front_one_after_the_other():
    due = np.array([0.0, 0.0, 0.0, 1.0])

    found = simulate(due, 0.01, np.array([[0.001]]), [1], 0.0)

    assert found == pytest.approx([0.011, 0.021, 0.031, 0.011])


MACHINE = Machine(base_s=0.004, row_s=0.0005, cores=2.0, front_s=0.0001)
TRAFFIC = Traffic(rows=1, most_rows=16, arrivals=Arrivals(0.99, 0.02))


@pytest.mark.parametrize("settings", [Settings(1, 1), Settings(2, 8), Settings(2, 16, 2000)])
def test_the_limit_is_where_the_latency_passes_the_objective(settings):
    found = limit(MACHINE, settings, TRAFFIC)

    assert found <= 1.05 * capacity(MACHINE, settings, TRAFFIC)
    assert latency(MACHINE, settings, TRAFFIC, 0.95 * found) <= 0.02
    assert latency(MACHINE, settings, TRAFFIC, 1.1 * found) > 0.02
    assert limit(MACHINE, settings, TRAFFIC, near=found / 3) == pytest.approx(found, rel=0.05)


def test_without_a_rate_that_keeps_the_objective_the_limit_is_0():
    impossible = Traffic(1, 16, Arrivals(0.99, 0.004), requests=300)

    assert limit(MACHINE, Settings(1, 16), impossible) == 0.0


def test_instances_beyond_the_cores_slow_each_other_down():
    table = MACHINE.table(Settings(4), 1, 1)

    assert table[:, 0] == pytest.approx([0.0045, 0.0045, 0.00675, 0.009])


def test_workers_share_the_cores():
    table = MACHINE.table(Settings(2, workers=2), 1, 1)

    assert table[:, 0] == pytest.approx([0.0045, 0.009])
    assert capacity(MACHINE, Settings(2, workers=2), TRAFFIC) == pytest.approx(4 / 0.009)


def test_threads_share_a_part_of_an_execution_and_use_cores_for_it():
    half = Machine(base_s=0.003, row_s=0.001, cores=2.0, shared=0.5, processors=2)

    assert half.table(Settings(1, threads=1), 1, 1)[0, 0] == pytest.approx(0.004)
    assert half.table(Settings(1, threads=2), 1, 1)[0, 0] == pytest.approx(0.003)
    assert half.table(Settings(1, threads=0), 1, 1)[0, 0] == pytest.approx(0.003)
    # Two of them keep 2 * 4 / 3 cores busy.
    assert half.table(Settings(2, threads=2), 1, 1)[1, 0] == pytest.approx(0.004)


def test_recorded_arrivals_keep_their_pattern():
    recorded = Arrivals(0.99, 0.02, intervals=(0.5, 0.5, 2.0))

    found = recorded.due(rate=2, seconds=3, number=0)

    assert np.diff(found, prepend=0) == pytest.approx([0.25, 0.25, 1, 0.25, 0.25, 1])


def test_rounds_begin_with_the_requests_that_wait_on_average_at_the_limit():
    found = Arrivals(0.99, 1.0).due(rate=100, seconds=2, number=1)

    assert np.count_nonzero(found == 0) == 21  # 100/s for 1 s / ln(100)
    assert found[-1] <= 2 and len(found) == pytest.approx(221, abs=45)


def test_executions_that_hinder_each_other_say_nothing_of_those_that_do_not():
    """Two executions with two threads each hinder each other on two cores: those of one thread do not."""

    def seen(settings, **milliseconds_by_rows):
        sizes = [Size(int(n[1:]), 100, ms / 1000) for n, ms in milliseconds_by_rows.items()]
        parts = [0.1] * len(PROBABILITIES)
        return Observation(settings, 0, 32, 0, 500, 0.1, [0.1], 0.1, 0.0, parts, sizes, 1.0, 0.0)

    observations = [
        seen(Settings(1, 1), r1=2.5),
        seen(Settings(1, 16), r4=7.0, r16=25.0),
        seen(Settings(1, 16, threads=1), r4=7.0, r16=25.0),
        seen(Settings(2, 16), r16=100.0),
    ]

    machine = fit(observations, processors=2)

    alone = machine.table(Settings(1, 16, threads=1), 1, 16)[0]
    assert alone[15] == pytest.approx(0.025, rel=0.1)
    assert alone[0] == pytest.approx(0.0025, rel=0.1)
