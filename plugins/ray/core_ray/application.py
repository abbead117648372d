"""CoreDeployment and app: a deployment of Ray Serve whose replicas hold a core.Server.

serve run core_ray:app model_repository=models
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from ray import serve

import core
from core.errors import invalid
from core_ray import ports
from core_ray.replica import CoreReplica

MAX_ONGOING_REQUESTS = 1000
"""Requests that Serve sends to a replica at once: the server's queue has them, so it can form batches."""

_NUMBERS = ("num_replicas", "max_ongoing_requests")  # of the deployment, that `app` takes too

CoreDeployment: serve.Deployment = serve.deployment(
    CoreReplica,
    name="CoreDeployment",
    max_ongoing_requests=MAX_ONGOING_REQUESTS,
    graceful_shutdown_timeout_s=35.0,  # more than exit_timeout_secs of the server
)


def app(options: Mapping[str, Any]) -> serve.Application:
    """Return an application with one CoreDeployment: `serve run core_ray:app model_repository=models`.

    options   those of core.Server and the ports of CoreReplica; num_replicas and max_ongoing_requests of
              the deployment. Texts are read as on the command line of core-serve. Folders are relative
              to the current one of this process, not of the replicas
    Raises CoreError(INVALID) for an unknown option or an invalid value.
    """
    options = dict(options)
    deployment = CoreDeployment
    numbers = {name: _number(name, options.pop(name)) for name in _NUMBERS if name in options}
    if numbers:
        deployment = deployment.options(**numbers)
    options = {name: _value(text) for name, text in options.items()}
    if repositories := options.get("model_repository"):
        several = [repositories] if isinstance(repositories, str | os.PathLike) else repositories
        options["model_repository"] = [_absolute(os.fspath(each)) for each in several]
    checked = dict(options)
    ports.taken_from(checked)
    core.Server(**checked)  # not started: a wrong option is an error here, not in a replica
    return deployment.bind(**options)


def _number(name: str, given: Any) -> int:
    try:
        number = int(str(given))
    except ValueError:
        number = 0
    if number < 1:
        raise invalid(f"{name}={given!r}: give a number above 0")
    return number


def _value(given: Any) -> Any:
    """Return a bool for the text of one, as `serve run` passes all values as texts."""
    return {"true": True, "false": False}.get(given, given) if isinstance(given, str) else given


def _absolute(repository: str) -> str:
    return repository if "://" in repository else os.path.abspath(repository)
