"""The search against the exhaustive truth, on servers in virtual time with hidden service times."""

import numpy as np
import pytest
from core_tune.observation import Refused
from core_tune.queueing.limit import Traffic
from core_tune.queueing.simulation import arrivals
from core_tune.search.search import Budget, Search
from core_tune.settings import Settings, Space
from virtual_server import Hidden, VirtualMeter, random_hidden, true_limit

SPACE = Space(Settings(1, 1, 0), [1, 2, 4, 8], [1, 4, 16], [0, 2000])


def searched(hidden, objective_s, *, space=SPACE, most=24, meter=VirtualMeter, seed=1):
    traffic = Traffic(1, 16, arrivals(500), 0.99, objective_s)
    made = meter(hidden, 0.99, objective_s, seed, 1, 16)
    search = Search(space, traffic, made, Budget(most, 600), least_rate=10)
    search.run()
    return search.found(), made


def objective_of(seed, hidden):
    return (hidden.base_s + hidden.row_s) * np.random.default_rng(seed).uniform(6, 12)


# Slow servers: a request costs as much time to simulate on a fast one.
@pytest.mark.parametrize("seed", [5, 21])
def test_it_finds_what_all_measurements_would(seed):
    hidden = random_hidden(seed)
    objective_s = objective_of(seed, hidden)

    found, meter = searched(hidden, objective_s, seed=seed)

    limits = {each: true_limit(hidden, each, 0.99, objective_s, 1, 16, 1000) for each in SPACE}
    assert limits[found.best] >= 0.95 * max(limits.values()), (found.best, limits)
    assert meter.count <= 24 and meter.clock < 600


EASY = Hidden(0.004, 0.0005, 1.0, 2.0, 6.0, 0.0001, 0.05, 0.0, 0.0)


def test_settings_that_a_server_refuses_are_left_out():
    class Refusing(VirtualMeter):
        def _measured(self, settings, rate, clients):
            if settings.instances > 1:
                raise Refused("no more memory")
            return super()._measured(settings, rate, clients)

    found, _ = searched(EASY, 0.05, meter=Refusing, most=14)

    assert found.best.instances == 1
    assert set(found.refused.values()) == {"no more memory"}
    assert all(each.instances > 1 for each in found.refused)


def test_an_objective_that_no_settings_keep_has_no_best():
    found, meter = searched(EASY, 0.003, most=12)

    assert found.best is None
    assert meter.count <= 12 and min(each.latency_s for each in found.observations) > 0.003


def test_equal_settings_are_decided_by_what_they_cost():
    front = Hidden(0.0002, 0.0003, 1.0, 8.0, 8.0, 0.004, 0.0, 0.0, 0.0)  # nothing helps

    found, _ = searched(front, 0.2, space=Space(Settings(1, 1), [1, 2, 4]), most=14)

    assert found.best == Settings(1, 1)


def test_a_search_ends_with_its_time():
    traffic = Traffic(1, 16, arrivals(300), 0.99, 0.05)
    meter = VirtualMeter(EASY, 0.99, 0.05, 1, 1, 16)

    Search(SPACE, traffic, meter, Budget(100, 60.0)).run()

    assert meter.clock <= 60 + 4 * 3.5
