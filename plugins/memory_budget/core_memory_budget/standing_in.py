"""Stand-ins: what answers for a version that is out: its configuration, and an endpoint where requests wait.

ModelIndex.resolve ─► [StandIns] ─► ModelVersion with an OutChain ─► ModelEndpoint ─► WaitingRequests
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

from core.governing import Admission, Handler, InFlightRequests, ModelEndpoint, ModelVersion
from core.request import NEWEST, InferenceRequest
from core.response import Reply
from core.telemetry.statistics import Statistics


class OutChain:
    """Takes the place of the chain of a version that is out. Loop thread.

    handler   checks a request, then passes it to `take`
    served    returns whether a request could be served, after a load
    """

    takes_device = False
    content = ""

    def __init__(
        self,
        version: ModelVersion,
        loop: asyncio.AbstractEventLoop,
        take: Handler,
        served: Callable[[], bool],
    ):
        self.signature = version.signature
        self.statistics = Statistics()
        self._in_flight = InFlightRequests(loop)
        self._take = take
        self._served = served
        # The chain of the loaded version checks again: inputs must keep the shape that clients send.
        inputs = {
            name: replace(spec, reshape=None) for name, spec in version.signature.inputs.items()
        }
        admission = Admission(replace(version.signature, inputs=inputs))
        self.handler = ModelEndpoint(self._in_flight, admission, self._counted)

    @property
    def in_flight(self) -> int:
        """Return the number of requests that wait or have not ended."""
        return self._in_flight.count

    @property
    def ready(self) -> bool:
        """Return whether a request can be served, after a load."""
        return self._served()

    async def check(self) -> bool:
        """Return `ready`: there is no instance to ask."""
        return self.ready

    def _counted(self, request: InferenceRequest) -> Reply:
        reply, outer = self._take(request), Reply(request)

        def arrived(item: Any, final: bool) -> None:
            outer.send(item, final)
            if final:
                self._in_flight.leave()

        reply.listen(arrived)
        return outer


class StandIns:
    """The stand-ins of all versions that are out, by key of the model and number. Loop thread.

    take     (key, request) → Reply, at some later time
    served   key → whether its requests can be served
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        take: Callable[[str, InferenceRequest], Reply],
        served: Callable[[str], bool],
    ):
        self._loop = loop
        self._take = take
        self._served = served
        self._out: dict[str, dict[int, ModelVersion]] = {}

    def find(self, key: str, number: int) -> ModelVersion | None:
        """Return what stands for a version; for NEWEST, for the one with the highest number."""
        versions = self._out.get(key)
        if not versions:
            return None
        return versions[max(versions)] if number == NEWEST else versions.get(number)

    def of(self, key: str) -> list[ModelVersion]:
        """Return the stand-ins of a model."""
        return list(self._out.get(key, {}).values())

    def composing(self, key: str) -> list[str]:
        """Return a model and the models that its stand-ins are composed of, directly or not."""
        found, waiting = [key], [key]
        while waiting:
            versions = self.of(waiting.pop())
            new = {step for version in versions for step in version.source.steps} - set(found)
            found += new
            waiting += new
        return found

    @property
    def keys(self) -> list[str]:
        """Return the keys of the models that have stand-ins."""
        return list(self._out)

    def add(self, version: ModelVersion) -> None:
        """Let a stand-in answer for a version whose configuration is complete."""
        key = version.key
        found = ModelVersion(version.source, version.version)
        found.state, found.reason = "UNAVAILABLE", version.reason
        found.config, found.plain = version.config, version.plain
        found.signature = version.signature
        found.load_seconds = version.load_seconds
        chain = OutChain(
            found, self._loop, lambda request: self._take(key, request), lambda: self._served(key)
        )
        found.chain = cast(Any, chain)
        self._out.setdefault(key, {})[version.version] = found

    def remove(self, key: str, number: int) -> None:
        """Remove the stand-in of a version, if it has one."""
        versions = self._out.get(key, {})
        versions.pop(number, None)
        if not versions:
            self._out.pop(key, None)
