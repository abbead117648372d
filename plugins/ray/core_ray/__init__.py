"""Models of core on Ray.

application.py   CoreDeployment and app: a deployment of Ray Serve whose replicas hold a core.Server
replica.py       CoreReplica: the class of its replicas
forwarding.py    HTTP requests of Serve's proxies, passed to the HTTP port of the replica's server
http_connections.py, http_connection.py
                 connections to that port
grpc_proxy.py    calls of Serve's gRPC proxies, passed to its gRPC port
ports.py         ports of a replica's server
logs.py          the server's log in the log file of its replica
response.py      Response: what a call by handle returns
scaling.py       WaitPolicy: the number of replicas by the estimated wait
signals.py       LoadSignals: the wait and the use of a replica's server
metrics.py       the server's metrics as those of Ray
reports.py       what a replica sends to Ray: metrics, and the models that are loaded
predictor.py     Predictor: batch inference with Ray Data

Each name is imported when it is first used: Predictor needs no Ray Serve.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from core_ray.application import CoreDeployment, app
    from core_ray.grpc_proxy import add_v2
    from core_ray.predictor import Predictor
    from core_ray.replica import CoreReplica
    from core_ray.response import Response
    from core_ray.scaling import WaitPolicy

__all__ = ["CoreDeployment", "CoreReplica", "Predictor", "Response", "WaitPolicy", "add_v2", "app"]

_HOMES = {
    "CoreDeployment": "application",
    "CoreReplica": "replica",
    "Predictor": "predictor",
    "Response": "response",
    "WaitPolicy": "scaling",
    "add_v2": "grpc_proxy",
    "app": "application",
}

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        if name not in _HOMES:
            raise AttributeError(f"module 'core_ray' has no attribute '{name}'")
        found = globals()[name] = getattr(import_module(f"core_ray.{_HOMES[name]}"), name)
        return found
