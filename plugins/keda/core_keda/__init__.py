"""KEDA's external scaler on the gRPC port: Kubernetes scales servers by their own signals.

trigger.py   the metadata of a trigger
looks.py     the metrics, collected once for all who ask
signal.py    the value that it names, from the metrics
scaler.py    the gRPC methods
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import core

if TYPE_CHECKING:
    from core.options import Flags
    from core.server import InferenceServer


@core.hookimpl
def core_add_options(parser: Flags) -> None:
    parser.add("allow-keda", True, "Whether the gRPC port answers KEDA's external scaler.")


@core.hookimpl
def core_server_starting(server: InferenceServer) -> None:
    if not server.options.added.get("allow_keda", True):
        return
    from core_keda.scaler import Scaler
    from frontends.grpc.extra_methods import GrpcMethods

    GrpcMethods.of(server).add(Scaler(server).methods())
