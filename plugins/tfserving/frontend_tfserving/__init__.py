"""The APIs of TensorFlow Serving: REST on the HTTP port, PredictionService and ModelService on the gRPC port.

request ─► tensors ─► prediction.py ─► InferenceRequest ─► Reply ─► tensors ─► response

Every model of the server answers, of any backend. rest/ has the JSON, rpc/ the messages of gRPC.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import core
from frontend_tfserving.options import TfServingOptions

if TYPE_CHECKING:
    from core.options import Flags
    from core.server import InferenceServer


@core.hookimpl
def core_add_options(parser: Flags) -> None:
    """Register the flags."""
    parser.add_section(TfServingOptions)


@core.hookimpl(tryfirst=True)
def core_server_starting(server: InferenceServer) -> None:
    """Add routes and methods to the ports of HTTP and gRPC."""
    if not TfServingOptions.of(server.options).allow_tfserving:
        return
    # Imported here: a command line needs no server library.
    from core.governing import KNOWN
    from frontend_tfserving.rest.routes import BELOW, OF_ONE_MODEL
    from frontend_tfserving.rpc.service import methods
    from frontend_tfserving.signatures import PARAMETERS
    from frontends.grpc.extra_methods import GrpcMethods
    from frontends.http.extra_routes import HttpRoutes

    KNOWN.extend(each for each in PARAMETERS if each not in KNOWN)  # core does not warn of them
    HttpRoutes.of(server).add(OF_ONE_MODEL, BELOW, lambda answer: answer)
    GrpcMethods.of(server).add(methods(server))
