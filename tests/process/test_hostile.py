"""Some thousand hostile requests: each is refused, nothing is lost or kept. `make fuzz` sends more."""

import pytest
from fuzz.hostile.__main__ import MODELS, PAIRS
from fuzz.hostile.campaign import begins_again, over_grpc, over_http

# The fast ones, with code of our own, get the larger share.
COUNTS = {"auto": (2000, 3000), "aiohttp": (600, 1000)}
SEED = 5


@pytest.fixture(scope="module", params=PAIRS, ids=[lane for lane, _ in PAIRS])
def pair(request):
    return request.param


@pytest.fixture(scope="module")
def server(pair, launch_for_all):
    lane, engine = pair
    return launch_for_all(
        MODELS,
        *("--model-control-mode=explicit", "--load-model=*"),
        *(f"--http-lane={lane}", f"--grpc-engine={engine}"),
    )


def test_hostile_requests_over_http_cause_no_harm(server, pair):
    findings = over_http(server, COUNTS[pair[0]][0], SEED)

    assert findings.bad == []
    assert findings.count > COUNTS[pair[0]][0]


def test_hostile_requests_over_grpc_cause_no_harm(server, pair):
    findings = over_grpc(server, COUNTS[pair[0]][1], SEED, restarts=begins_again(pair[1]))

    assert findings.bad == []
    assert findings.count > COUNTS[pair[0]][1] * 0.9
