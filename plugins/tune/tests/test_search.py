"""The search against the exhaustive truth, on servers in virtual time with hidden service times."""

import numpy as np
import pytest
from core_tune.observation import Refused
from core_tune.queueing.arrivals import Arrivals
from core_tune.queueing.limit import Traffic
from core_tune.search.search import Budget, Search
from core_tune.settings import CPU, GPU, Settings, Space
from virtual_server import Hidden, VirtualMeter, random_hidden, true_limit

from core.errors import CoreError

SPACE = Space(Settings(1, 1, 0), [1, 2, 4, 8], [1, 4, 16], [0, 2000])


def searched(hidden, objective_s, *, space=SPACE, most=24, meter=VirtualMeter, seed=1):
    traffic = Traffic(1, 16, Arrivals(0.99, objective_s), requests=500)
    made = meter(hidden, 0.99, objective_s, seed, 1, 16)
    search = Search(space, traffic, made, Budget(most, 600), least_rate=10)
    search.run()
    return search.found(), made


def objective_of(seed, hidden):
    return (hidden.base_s + hidden.row_s) * np.random.default_rng(seed).uniform(6, 12)


# A slow server: a request costs as much time to simulate on a fast one.
def test_it_finds_what_all_measurements_would(seed=23):
    hidden = random_hidden(seed)
    objective_s = objective_of(seed, hidden)

    found, meter = searched(hidden, objective_s, seed=seed)

    limits = {each: true_limit(hidden, each, 0.99, objective_s, 1, 16, 300) for each in SPACE}
    near = [each for each in SPACE if limits[each] >= 0.85 * max(limits.values())]
    exact = {e: true_limit(hidden, e, 0.99, objective_s, 1, 16, 1000) for e in (*near, found.best)}
    assert exact[found.best] >= 0.95 * max(exact.values()), (found.best, exact)
    assert meter.count <= 24 and meter.clock < 600


EASY = Hidden(0.004, 0.0005, 1.0, 2.0, 6.0, 0.0001, 0.05, 0.0, 0.0)


def test_settings_that_a_server_refuses_are_left_out():
    class Refusing(VirtualMeter):
        def _measured(self, settings, rate, clients, longer=1.0):
            if settings.instances > 1:
                raise Refused("no more memory")
            return super()._measured(settings, rate, clients, longer)

    found, _ = searched(EASY, 0.05, meter=Refusing, most=14)

    assert found.best.instances == 1
    assert set(found.refused.values()) == {"no more memory"}
    assert all(each.instances > 1 for each in found.refused)


@pytest.mark.parametrize(
    ("made", "space"), [(1, SPACE), (1, Space(Settings(1, 1), [1])), (8, SPACE)]
)
def test_a_server_that_begins_to_refuse_ends_the_search(made, space):
    found, meter = searched(EASY, 0.05, meter=refusing_after(made), space=space, most=14)

    assert (found.best, found.limits) == (None, {})
    assert meter.count == made and found.refused


def test_a_server_that_refuses_everything_is_an_error():
    with pytest.raises(CoreError, match=r"refuses all settings .* first 1 instance.*: it is gone"):
        searched(EASY, 0.05, meter=refusing_after(0))


def refusing_after(made):
    class Refusing(VirtualMeter):
        def _measured(self, settings, rate, clients, longer=1.0):
            if self.count >= made:
                raise Refused("it is gone")
            return super()._measured(settings, rate, clients, longer)

    return Refusing


def test_an_objective_that_no_settings_keep_has_no_best():
    found, meter = searched(EASY, 0.003, most=12)

    assert found.best is None
    assert meter.count <= 12 and min(each.latency_s for each in found.observations) > 0.003


def test_equal_settings_are_decided_by_what_they_cost():
    front = Hidden(0.0002, 0.0003, 1.0, 8.0, 8.0, 0.004, 0.0, 0.0, 0.0)  # nothing helps

    found, _ = searched(front, 0.2, space=Space(Settings(1, 1), [1, 2, 4]), most=14)

    assert found.best == Settings(1, 1)


def test_a_search_ends_with_its_time():
    traffic = Traffic(1, 16, Arrivals(0.99, 0.05), requests=300)
    meter = VirtualMeter(EASY, 0.99, 0.05, 1, 1, 16)

    Search(SPACE, traffic, meter, Budget(100, 60.0)).run()

    assert meter.clock <= 60 + 4 * 3.5


def test_threads_of_an_execution_are_tried():
    # Two threads halve almost all of an execution; instances have to share the two cores.
    alone = Hidden(0.02, 0.0, 1.0, 2.0, 8.0, 0.0001, 0.02, 0.0, 0.0, shared=0.9)
    space = Space(Settings(1, 1), [1, 2], threads=[0, 2], most_threads=4)
    limits = {each: true_limit(alone, each, 0.99, 0.06, requests=1000) for each in space}

    found, _ = searched(alone, 0.06, space=space, most=14)

    assert limits[found.best] >= 0.95 * max(limits.values()), (found.best, limits)
    assert found.best.threads == 2
    assert found.machines["KIND_CPU"].shared > 0.5


def test_workers_share_what_requests_cost_outside_of_the_instances():
    front = Hidden(0.0004, 0.0, 1.0, 8.0, 8.0, 0.002, 0.0, 0.0, 0.0)
    space = Space(Settings(1, 1), [1, 2], workers=[1, 2])

    found, _ = searched(front, 0.05, space=space, most=12)

    assert found.best.workers == 2
    assert found.limits[found.best] > 1.5 * found.limits[Settings(1, 1)]


def test_a_kind_that_a_server_does_not_have_is_left_out():
    class Refusing(VirtualMeter):
        def _measured(self, settings, rate, clients, longer=1.0):
            if settings.kind == GPU:
                raise Refused("no GPU here")
            return super()._measured(settings, rate, clients, longer)

    space = Space(Settings(1, 1), [1, 2], [1, 8], kinds=[CPU, GPU])

    found, _ = searched(EASY, 0.05, meter=Refusing, space=space, most=12)

    assert found.best.kind == CPU
    assert set(found.refused) == {Settings(1, 1, kind=GPU), Settings(1, 8, kind=GPU)}


@pytest.mark.parametrize("executions", [5, 100])
def test_limits_are_right_however_long_the_queue_takes_to_grow(executions):
    """The longer the objective is, measured in executions, the longer a queue takes to reach its length."""
    service, objective_s = 0.005, 0.005 * executions
    hidden = Hidden(service, 0.0, 1.0, 1.0, 8.0, 1e-9, 0.0, 0.0, 0.0)
    due = np.cumsum(np.random.default_rng(3).exponential(1.0, 200_000))
    rates = np.arange(0.5, 1.0, 0.01) / service
    kept = [r for r in rates if of_one(due / r, service) <= objective_s]

    found, _ = searched(hidden, objective_s, space=Space(Settings(1, 1), [1]), most=8)

    assert found.limits[Settings(1, 1)] == pytest.approx(max(kept), rel=0.03)


def of_one(due, service):
    number = np.arange(len(due))
    ends = np.maximum.accumulate(due - service * number) + service * (number + 1)
    return float(np.quantile(ends - due, 0.99))
