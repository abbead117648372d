"""CoreDeployment and app: a deployment of Ray Serve whose replicas hold a core.Server.

serve run core_ray:app model_repository=models
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from ray import serve
from ray.serve.config import AutoscalingConfig, AutoscalingPolicy

import core
from core.errors import invalid
from core_ray import ports
from core_ray.replica import CoreReplica
from core_ray.scaling import WaitPolicy

MAX_ONGOING_REQUESTS = 1000
"""Requests that Serve sends to a replica at once: the server's queue has them, so it can form batches."""

CoreDeployment: serve.Deployment = serve.deployment(
    CoreReplica,
    name="CoreDeployment",
    max_ongoing_requests=MAX_ONGOING_REQUESTS,
    graceful_shutdown_timeout_s=35.0,  # more than exit_timeout_secs of the server
)


def app(options: Mapping[str, Any]) -> serve.Application:
    """Return an application with one CoreDeployment: `serve run core_ray:app model_repository=models`.

    options   those of core.Server and the ports of CoreReplica. num_replicas and max_ongoing_requests are
              those of the deployment; max_replicas, min_replicas and target_wait_ms have WaitPolicy choose
              the number of replicas. Texts are read as on the command line of core-serve. Folders are
              relative to the current one of this process, not of the replicas
    Raises CoreError(INVALID) for an unknown option or an invalid value, CoreError(UNSUPPORTED) for
    certificates of HTTP clients, which Serve's proxy has not.
    """
    options = dict(options)
    deployment = CoreDeployment.options(**_of_deployment(options))
    options = {name: _value(text) for name, text in options.items()}
    if repositories := options.get("model_repository"):
        several = [repositories] if isinstance(repositories, str | os.PathLike) else repositories
        options["model_repository"] = [_absolute(os.fspath(each)) for each in several]
    checked = dict(options)
    ports.taken_from(checked)
    server = core.Server(**checked)  # not started: an option is wrong here, not in a replica
    ports.check_http(server)
    return deployment.bind(**options)


def _of_deployment(options: dict[str, Any]) -> dict[str, Any]:
    """Remove the options that are the deployment's, and return them as Serve wants them."""
    taken: dict[str, Any] = {
        name: _number(name, options.pop(name), least)
        for name, least in {
            "num_replicas": 1,
            "max_ongoing_requests": 1,
            "max_replicas": 1,
            "min_replicas": 0,
        }.items()
        if name in options
    }
    wait = {name: options.pop(name) for name in ("target_wait_ms",) if name in options}
    bounds = ("max_replicas", "min_replicas")
    scaled: dict[str, int] = {name: taken.pop(name) for name in bounds if name in taken}
    if "max_replicas" in scaled:
        if "num_replicas" in taken:
            raise invalid("num_replicas and max_replicas are both given: give one of them")
        taken["autoscaling_config"] = _autoscaling(scaled, wait)
    elif unused := [*scaled, *wait]:
        raise invalid(f"{unused[0]} is given without max_replicas: give max_replicas, too")
    return taken


def _autoscaling(bounds: dict[str, int], wait: dict[str, Any]) -> AutoscalingConfig:
    """Return a configuration by which WaitPolicy chooses a number of replicas within the bounds."""
    try:
        arguments = {name: float(given) for name, given in wait.items()}
        WaitPolicy(**arguments)
    except (TypeError, ValueError):
        raise invalid(
            f"target_wait_ms={wait['target_wait_ms']!r}: give milliseconds above 0"
        ) from None
    least, most = bounds.get("min_replicas", 1), bounds["max_replicas"]
    if least > most:
        raise invalid(f"min_replicas={least} is more than max_replicas={most}: give at most {most}")
    policy = AutoscalingPolicy(policy_function=WaitPolicy, policy_kwargs=arguments)
    return AutoscalingConfig(min_replicas=least, max_replicas=most, policy=policy)


def _number(name: str, given: Any, least: int) -> int:
    try:
        number = int(str(given))
    except ValueError:
        number = -1
    if number < least:
        raise invalid(f"{name}={given!r}: give a number of at least {least}")
    return number


def _value(given: Any) -> Any:
    """Return a bool for the text of one, as `serve run` passes all values as texts."""
    return {"true": True, "false": False}.get(given, given) if isinstance(given, str) else given


def _absolute(repository: str) -> str:
    return repository if "://" in repository else os.path.abspath(repository)
