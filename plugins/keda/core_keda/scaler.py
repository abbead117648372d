"""Scaler: KEDA's external scaler, answered by the server that it scales.

KEDA's operator ─► gRPC port ─► [Scaler] ─► Trigger ─► Looks ─► metrics of the server
"""

from __future__ import annotations

import math
from collections.abc import AsyncGenerator, AsyncIterator
from typing import TYPE_CHECKING

from core.errors import invalid
from core_keda import messages
from core_keda.looks import Families, Looks
from core_keda.signal import value_of
from core_keda.trigger import Trigger
from frontends.grpc.call import GrpcCall
from frontends.grpc.extra_methods import unary
from frontends.grpc.method import Method, StreamMethod, UnaryMethod
from frontends.grpc.newest_streams import NewestStreams
from frontends.grpc.protocol.decode import decode

if TYPE_CHECKING:
    from core.server import InferenceServer

_PATH = "/externalscaler.ExternalScaler/"
_CATEGORY = "metrics"
_EVERY_S = 1.0
MOST_STREAMS = 1024  # open ones of a server; KEDA opens one for each trigger


class Scaler:
    """Answers for one server. Not thread-safe: call from the event loop only.

    every_s   seconds between two looks at the metrics for an open stream
    """

    def __init__(self, server: InferenceServer, every_s: float = _EVERY_S):
        self._looks = Looks(server.control.health.metrics)
        self._every_s = every_s
        self._streams = NewestStreams(MOST_STREAMS, "streams of StreamIsActive")

    def methods(self) -> tuple[Method, ...]:
        """Return the methods of the service. All of them only read, like a scrape of the metrics."""

        def reading(name: str, request: type, service: object) -> UnaryMethod:
            function = unary(request, service)  # type: ignore[arg-type]
            return UnaryMethod(_PATH + name, _CATEGORY, function, changes=False)

        return (
            reading("IsActive", messages.ScaledObjectRef, self.is_active),
            reading("GetMetricSpec", messages.ScaledObjectRef, self.metric_spec),
            reading("GetMetrics", messages.GetMetricsRequest, self.metrics),
            StreamMethod(_PATH + "StreamIsActive", _CATEGORY, self.stream_is_active, changes=False),
        )

    async def is_active(self, reference: messages.ScaledObjectRef) -> messages.IsActiveResponse:
        """Return whether the server works or has a value above the trigger's activation."""
        return messages.IsActiveResponse(result=await self._active(_trigger(reference)))

    async def stream_is_active(
        self, requests: AsyncIterator[bytes], call: GrpcCall
    ) -> AsyncGenerator[bytes, None]:
        """Send whether the trigger is active: at once, then after each change, until the client ends it.

        Raises CoreError(EXHAUSTED) when it is the oldest of too many streams.
        """
        first = await anext(requests, None)
        if first is None:
            raise invalid("StreamIsActive has no request; send one ScaledObjectRef")
        trigger = _trigger(decode(messages.ScaledObjectRef, first))
        sent: bool | None = None
        with self._streams.opened() as stream:
            while True:
                if (now := await self._active(trigger)) != sent:
                    sent = now
                    yield messages.IsActiveResponse(result=now).SerializeToString()
                await stream.sleep(self._every_s)

    async def metric_spec(
        self, reference: messages.ScaledObjectRef
    ) -> messages.GetMetricSpecResponse:
        """Return the name of the trigger's metric, and its target."""
        trigger = _trigger(reference)
        spec = messages.MetricSpec(
            metricName=trigger.metric_name,
            targetSize=math.ceil(trigger.target),
            targetSizeFloat=trigger.target,
        )
        return messages.GetMetricSpecResponse(metricSpecs=[spec])

    async def metrics(self, request: messages.GetMetricsRequest) -> messages.GetMetricsResponse:
        """Return the value of the trigger's metric now."""
        trigger = _trigger(request.scaledObjectRef)
        found = value_of(trigger, await self._looks.families())
        value = messages.MetricValue(
            metricName=request.metricName or trigger.metric_name,
            metricValue=math.ceil(found),
            metricValueFloat=found,
        )
        return messages.GetMetricsResponse(metricValues=[value])

    async def _active(self, trigger: Trigger) -> bool:
        return _is_active(trigger, await self._looks.families())


def _is_active(trigger: Trigger, families: Families) -> bool:
    """Return whether the signal, or the number of requests in flight, is above the activation."""
    signals = (trigger, Trigger(trigger.model, "in_flight"))
    return any(value_of(each, families) > trigger.activation for each in signals)


def _trigger(reference: messages.ScaledObjectRef) -> Trigger:
    return Trigger.of(dict(reference.scalerMetadata), reference.name)
