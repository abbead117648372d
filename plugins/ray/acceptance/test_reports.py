"""What replicas tell Ray, as docs/operate/ray.md has it: metrics, logs, and which models they have loaded."""

import os
import re
import time
import urllib.request
from pathlib import Path

import numpy as np
import pytest
import ray
from core_ray import CoreDeployment, CoreReplica
from ray import serve

MODELS = ("first", "second", "third", "fourth")


def wait_for(condition, seconds=120):
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end
        time.sleep(0.5)
    return found


def exported(pattern):
    """Return the first match of a pattern in the metrics of Ray's node."""
    port = ray.nodes()[0]["MetricsExportPort"]
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as response:
        return re.search(pattern, response.read().decode(), re.M)


def test_metrics_of_the_server_are_metrics_of_ray(run, repository):
    handle = run(CoreDeployment.bind(model_repository=str(repository)), "measured", "/measured")
    for _ in range(3):
        handle.infer.remote("wait", {"ms": np.array([[1]], np.int32)}).result(timeout_s=60)

    row = wait_for(
        lambda: exported(r'^ray_nv_inference_request_success_total\{.*application="measured".*\} 3')
    )[0]
    assert 'model="wait"' in row and 'deployment="CoreDeployment"' in row and "replica=" in row
    assert exported(r'^ray_core_model_ready\{.*application="measured".*model="wait".*\} 1')


def test_the_log_of_the_server_is_in_the_log_of_its_replica(run, repository):
    run(CoreDeployment.bind(model_repository=str(repository)), "logged", "/logged")
    folder = Path(ray._private.worker._global_node.get_logs_dir_path()) / "serve"

    (log,) = folder.glob("replica_logged_*.log")
    assert "successfully loaded 'wait'" in log.read_text()


@pytest.fixture
def many(run, repository, tmp_path):
    """Two replicas that load models on request, from a repository of four; they say what they have loaded."""
    for name in MODELS:
        (tmp_path / name).symlink_to(repository / "wait")

    class Replica(CoreReplica):
        async def loaded(self):
            return os.getpid(), sorted(each["name"] for each in self._server.statistics())

    deployment = serve.deployment(
        Replica, num_replicas=2, max_ongoing_requests=100, ray_actor_options={"num_cpus": 0.5}
    )
    bound = deployment.bind(model_repository=str(tmp_path), load_on_request=True)
    return run(bound, "many", "/many")


def test_requests_with_a_model_id_go_to_the_replica_that_has_the_model(many):
    def ask(model):
        named = many.options(multiplexed_model_id=model)
        named.infer.remote(model, {"ms": np.array([[1]], np.int32)}).result(timeout_s=120)

    for model in MODELS:
        ask(model)
        time.sleep(3)  # until the routers know where it is
    for _ in range(10):
        for model in MODELS:
            ask(model)

    answers = [many.loaded.remote().result(timeout_s=60) for _ in range(30)]
    loaded = dict(answers)
    assert len(loaded) == 2
    first, second = loaded.values()
    assert sorted([*first, *second]) == sorted(MODELS)
    assert len(first) == len(second)
