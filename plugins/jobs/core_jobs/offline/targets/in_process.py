"""InProcess: a server in this process, without ports."""

from __future__ import annotations

import asyncio
from typing import Any

import core
from core.config import Signature
from core.errors import CoreError
from core.request import NEWEST
from core_jobs.offline.item import Request, Responses
from core_jobs.offline.targets.target import signature_of

_FIELDS = {
    "sequence_id": "correlation_id",
    "sequence_start": "sequence_start",
    "sequence_end": "sequence_end",
    "priority": "priority",
    "timeout": "queue_timeout_us",
}
"""Parameters of the v2 protocol → fields of a request in this process."""


class InProcess:
    """A server that loads one model, and those that it calls (target.Target).

    repositories   folders or URLs
    version        NEWEST for the newest
    """

    def __init__(self, model: str, version: int, repositories: list[str]):
        self._model = model
        self._version = version
        self._server = core.Server(
            model_repository=repositories, model_control_mode="explicit", load_model=[model]
        )
        self._streams = False

    async def open(self) -> Signature:
        await asyncio.to_thread(self._server.start)
        found = signature_of(self._server.config(self._model, self._version), self._version)
        self._streams = found.decoupled
        return found

    async def ask(self, request: Request) -> Responses:
        fields = _fields(request)
        if self._version != NEWEST:
            fields["version"] = self._version
        if not self._streams:
            response = await self._server.infer_async(self._model, request.inputs, **fields)
            return [[response.tensor(name) for name in response]]
        found: Responses = []
        async for each in self._server.stream_async(self._model, request.inputs, **fields):
            if isinstance(each, CoreError):
                raise each
            found.append([each.tensor(name) for name in each])
        return found

    async def close(self) -> None:
        await asyncio.to_thread(self._server.stop)


def _fields(request: Request) -> dict[str, Any]:
    """Return the optional fields of a request."""
    own = {_FIELDS[name]: value for name, value in request.parameters.items() if name in _FIELDS}
    others = {name: value for name, value in request.parameters.items() if name not in _FIELDS}
    return {"id": request.id, "parameters": others, **own}
