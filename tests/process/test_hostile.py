"""Some thousand hostile requests: each is refused, nothing is lost or kept. `make fuzz` sends more."""

import subprocess
import sys
from pathlib import Path

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


def test_the_program_behind_make_fuzz_runs_each_campaign():
    ended = subprocess.run(
        [sys.executable, "-m", "tests.fuzz.hostile", "--requests", "40", "--seed", "2"],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=150,
    )

    assert ended.returncode == 0, ended.stdout + ended.stderr
    rows = [line for line in ended.stdout.splitlines() if line.endswith("| none |")]
    assert [row.split("|")[1].strip() for row in rows] == [
        f"{protocol}, {name}"
        for lane, engine in PAIRS
        for protocol, name in (("HTTP", lane), ("gRPC", engine))
    ]
