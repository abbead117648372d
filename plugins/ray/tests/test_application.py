"""`serve run core_ray:app …` checks its arguments before Ray starts anything."""

import os
import re
from pathlib import Path

import pytest
import yaml

import core

pytest.importorskip("ray.serve", reason="Ray is an extra: make test-ray has it")

from core_ray import CoreDeployment, app
from ray.serve.config import AutoscalingConfig


def bound(application):
    """Return the deployment of an application, and the arguments of its replicas."""
    deployment = application._bound_deployment
    return deployment, deployment.init_kwargs


def test_texts_of_the_command_line_are_read_as_options(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    deployment, options = bound(
        app(
            {
                "model_repository": "models",
                "num_replicas": "2",
                "max_ongoing_requests": "50",
                "http_port": "8100",
                "strict_readiness": "false",
                "log_verbose": "1",
            }
        )
    )

    assert (deployment.num_replicas, deployment.max_ongoing_requests) == (2, 50)
    assert options == {
        "model_repository": [os.path.join(tmp_path, "models")],
        "http_port": "8100",
        "strict_readiness": False,
        "log_verbose": "1",
    }


def test_a_repository_in_a_bucket_stays_as_it_is():
    _, options = bound(app({"model_repository": ["s3://bucket/models", "/models"]}))

    assert options["model_repository"] == ["s3://bucket/models", "/models"]


def test_bounds_of_the_replicas_have_the_wait_choose_their_number():
    deployment, options = bound(
        app({"min_replicas": "0", "max_replicas": "3", "target_wait_ms": "50"})
    )

    autoscaling = deployment._deployment_config.autoscaling_config
    assert (autoscaling.min_replicas, autoscaling.max_replicas) == (0, 3)
    assert autoscaling.policy.get_policy()(**autoscaling.policy.policy_kwargs).target_wait_ms == 50
    assert options == {}


def test_the_autoscaling_of_the_documentation_is_valid():
    page = (Path(__file__).parents[3] / "docs" / "operate" / "ray.md").read_text()
    (fragment,) = re.findall(r"^ *autoscaling_config:\n(?: +.*\n)+", page, re.M)

    found = AutoscalingConfig.model_validate(yaml.safe_load(fragment)["autoscaling_config"])

    policy = found.policy.get_policy()(**found.policy.policy_kwargs)
    assert (found.max_replicas, policy.target_wait_ms) == (3, 50)


@pytest.mark.parametrize(
    "options, text",
    [
        ({"max_replicas": 3, "num_replicas": 2}, "num_replicas and max_replicas are both given"),
        ({"target_wait_ms": 50}, "target_wait_ms is given without max_replicas"),
        ({"max_replicas": 3, "target_wait_ms": "0"}, "target_wait_ms='0': give milliseconds"),
        ({"max_replicas": 3, "min_replicas": 4}, "min_replicas=4 is more than max_replicas=3"),
        ({"model_repositry": "models"}, "did you mean 'model_repository'"),
        ({"num_replicas": "many"}, "num_replicas='many': give a number of at least 1"),
        ({"grpc_port": "70000"}, "grpc_port='70000': give the first port"),
        ({"log_verbose": "much"}, "log_verbose"),
        ({"http_use_ssl_mutual": "true"}, "remove http_use_ssl_mutual"),
    ],
)
def test_a_wrong_argument_is_refused_with_its_name(options, text):
    with pytest.raises(core.CoreError, match=text):
        app(options)


def test_a_replica_gets_as_many_requests_as_its_queue_can_batch():
    assert CoreDeployment.max_ongoing_requests == 1000
