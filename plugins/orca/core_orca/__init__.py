"""Load reports of ORCA: gRPC clients and Envoy balance by the load of each server.

utilization.py   how much of its capacity a server uses
reports.py       reports in trailers, and the gRPC method that streams them
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import core
from core.errors import invalid

if TYPE_CHECKING:
    from core.options import Flags
    from core.server import InferenceServer

_FULL_WAIT_S = 0.1


@core.hookimpl
def core_add_options(parser: Flags) -> None:
    parser.add("allow-orca", True, "Whether the gRPC port streams load reports of ORCA.")
    parser.add(
        "orca-trailers",
        False,
        "Whether each response of a model over gRPC has the trailer endpoint-load-metrics-bin.",
    )
    parser.add(
        "orca-full-wait-secs",
        _FULL_WAIT_S,
        "Estimated wait of a request beyond which load reports call the server more than full.",
    )


@core.hookimpl
def core_server_starting(server: InferenceServer) -> None:
    added = server.options.added
    full_wait_s = added.get("orca_full_wait_secs", _FULL_WAIT_S)
    if not full_wait_s > 0:
        raise invalid(
            f"--orca-full-wait-secs is {full_wait_s:g}, it must be above 0, such as {_FULL_WAIT_S}"
        )
    from core_orca.reports import BinaryReports
    from core_orca.utilization import Utilization
    from frontends.grpc.extra_methods import GrpcMethods
    from frontends.shared.load_reports import LoadReports

    reports = LoadReports.of(server)
    reports.add(Utilization(server, full_wait_s))
    binary = BinaryReports(reports)
    if added.get("orca_trailers", False):
        reports.unasked = binary.latest
    if added.get("allow_orca", True):
        GrpcMethods.of(server).add([binary.method()])
