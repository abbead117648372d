"""Requests that were costly for their size once: the server holds little, and others do not wait."""

import pytest
from fuzz.costly.__main__ import MODELS
from fuzz.costly.measure import Meter
from fuzz.costly.search import KNOWN, MOST_MEMORY
from fuzz.hostile.__main__ import PAIRS

# Each of them took seconds. A loaded machine lets others wait for tenths of a second without any fault of
# the server; the bound of the fuzzer is for a quiet machine. So the best of some runs counts.
MOST_STALL_S = 0.5
RUNS = 3


@pytest.fixture(scope="module", params=PAIRS, ids=[lane for lane, _ in PAIRS])
def meter(request, launch_for_all):
    lane, engine = request.param
    server = launch_for_all(MODELS, f"--http-lane={lane}", f"--grpc-engine={engine}")
    found = Meter(server)
    found.engine = engine
    yield found
    found.close()


@pytest.mark.parametrize("recipe", KNOWN, ids=str)
def test_a_small_request_costs_little(meter, recipe):
    most = MOST_MEMORY
    if meter.engine == "grpcio" and recipe.protocol == "grpc" and recipe.packing:
        # The library decompresses up to --grpc-max-message-size (docs/operate/limits.md), into three copies.
        most += 3 * len(recipe.plain())

    for _ in range(RUNS):
        cost = meter.cost(recipe)
        assert meter.alive
        assert cost.excess <= most, cost
        if cost.stall_s <= MOST_STALL_S:
            break
    assert cost.stall_s <= MOST_STALL_S, cost
