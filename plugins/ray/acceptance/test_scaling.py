"""Serve scales a CoreDeployment by the wait of its requests: up and down, without a lost request.

`make test-ray ARGS=-rP` shows the figures.
"""

import time

import pytest
from core_ray import CoreDeployment
from ray import serve
from ray.serve.config import AutoscalingConfig

# As in a configuration file, with delays of seconds instead of minutes.
AUTOSCALING = AutoscalingConfig.model_validate(
    {
        "min_replicas": 1,
        "max_replicas": 3,
        "metrics_interval_s": 0.5,
        "look_back_period_s": 2.0,
        "upscale_delay_s": 1.0,
        "downscale_delay_s": 3.0,
        "policy": {
            "policy_function": "core_ray:WaitPolicy",
            "policy_kwargs": {"target_wait_ms": 100},
        },
    }
)
MS = 50  # of a request: a replica answers at most 20 in a second


def replicas():
    (deployment,) = serve.status().applications["scaled"].deployments.values()
    return deployment.replica_states.get("RUNNING", 0)


def wait_for(number, seconds=180):
    """Return the seconds until as many replicas run."""
    start = time.monotonic()
    while replicas() != number:
        waited_s = time.monotonic() - start
        assert waited_s < seconds, f"{replicas()} replicas run instead of {number}"
        time.sleep(0.2)
    return time.monotonic() - start


@pytest.fixture
def scaled(run, repository):
    deployment = CoreDeployment.options(
        autoscaling_config=AUTOSCALING, ray_actor_options={"num_cpus": 0.5}
    )
    return run(deployment.bind(model_repository=str(repository)), "scaled", "/scaled")


def test_replicas_follow_the_wait_from_one_to_three_and_back_without_a_lost_request(scaled, load):
    clients = load(scaled, "/scaled", MS)
    clients.set(1)
    time.sleep(6)
    assert replicas() == 1  # no request has waited

    start = time.monotonic()
    for number in (4, 8, 16):
        clients.set(number)
        time.sleep(3)
    wait_for(3)
    up_s = time.monotonic() - start
    clients.set(1)
    down_s = wait_for(1)
    clients.end()

    print(
        f"{clients.answered} answered, {len(clients.failed)} failed; three replicas within {up_s:.0f} s of "
        f"more clients, one {down_s:.0f} s after they left"
    )
    assert clients.failed == []
    assert clients.answered > 100
