"""Requests that were costly for their size once: the server holds no more than it may, and others do not wait."""

import pytest
from fuzz.costly.__main__ import MODELS
from fuzz.costly.measure import Meter
from fuzz.costly.search import KNOWN, MOST_MEMORY
from fuzz.hostile.__main__ import PAIRS

# Each of them took seconds. A loaded machine lets others wait for tenths of a second without any reason of the
# server's; the fuzzer's own bound is for a quiet one.
MOST_STALL_S = 0.5


@pytest.fixture(scope="module", params=PAIRS, ids=[lane for lane, _ in PAIRS])
def meter(request, launch_for_all):
    lane, engine = request.param
    server = launch_for_all(MODELS, f"--http-lane={lane}", f"--grpc-engine={engine}")
    found = Meter(server)
    yield found
    found.close()


@pytest.mark.parametrize("recipe", KNOWN, ids=str)
def test_a_small_request_costs_little(meter, recipe):
    cost = meter.cost(recipe)

    assert meter.alive
    assert cost.excess <= MOST_MEMORY, cost
    assert cost.stall_s <= MOST_STALL_S, cost
