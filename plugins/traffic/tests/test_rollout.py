"""The first phase of `make soak-traffic` in small: weights change in two workers while requests flow."""

import asyncio

import pytest
from rollout.load import Load
from rollout.run import Run, serving

RATE = 100.0  # requests per second
STEP_S = 1.0


def test_each_step_gets_its_share_while_weights_change_under_one_load(tmp_path):
    pytest.importorskip("core_workers")
    pytest.importorskip("backend_python")
    with serving(tmp_path, workers=2) as server:
        run = Run(server.ports.http, Load(server.ports.http, RATE, 8, seed=1), RATE, STEP_S)
        asyncio.run(run.roll_out((20, 50, 100)))

    assert list(run.found.facts) == ["20 %", "50 %", "100 %", "rollout"]
    # A busy machine may send and answer less: make soak-traffic judges that.
    assert not [each for each in run.found.problems if ", below " not in each]
