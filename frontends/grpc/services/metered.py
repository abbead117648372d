"""Counts the tokens of the requests of a stream."""

from __future__ import annotations

from collections.abc import Callable

from core.control import ModelEndpoint
from core.control.models import Models
from core.request import InferenceRequest
from core.response import Reply
from frontends.grpc.call import GrpcCall
from frontends.shared.access_log import AccessLogEntry

AskLogged = Callable[[ModelEndpoint, InferenceRequest, "AccessLogEntry | None"], Reply]


def asking(models: Models, call: GrpcCall) -> AskLogged:
    """Return a function that hands a request of a call to its model, as Models.ask does.

    If the call has a meter, it counts the tokens in the request's entry of the access log, and in the limit
    of the caller, and raises Exhausted if the caller has no tokens left.
    """

    def plain(
        endpoint: ModelEndpoint, request: InferenceRequest, entry: AccessLogEntry | None
    ) -> Reply:
        return models.ask(endpoint, request)

    def metered(
        endpoint: ModelEndpoint, request: InferenceRequest, entry: AccessLogEntry | None
    ) -> Reply:
        meter = call.active.meter(entry)
        if meter is None:
            return models.ask(endpoint, request)
        reply: Reply = meter.ask(models.ask, endpoint, request)
        return reply

    return plain if call.active is None else metered
