"""A core.Server in this process: InProcessServer runs it, InProcessSender sends requests to it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import core
from core.dtypes import BF16
from core.errors import CoreError, invalid
from core_bench.data.json_file import Step
from core_bench.load.senders import Marks, Refused, SequenceFields
from core_bench.model.address import Address
from core_bench.plan import Side


class InProcessServer:
    """A server of the repositories of a side. Raises CoreError if it does not start.

    address   a port of the loopback interface for questions; requests do not pass through it
    """

    def __init__(self, side: Side):
        if not side.repository:
            raise invalid("--service-kind=in_process needs --model-repository DIR")
        self.server = core.Server(model_repository=list(side.repository), exit_on_error=False)
        self.server.start()
        ports = self.server.serve(http_port=0, address="127.0.0.1")
        self.address = Address("127.0.0.1", ports["http"])

    def close(self) -> None:
        self.server.stop()


class InProcessSender:
    """Sends numpy arrays. The server is not its own."""

    def __init__(self, server: Any, side: Side, steps: Sequence[Step]):
        self._server, self._side = server, side
        self._inputs = [
            {
                name: core.Tensor(name, BF16, value.shape, array=value.array())
                if value.datatype == "BF16"
                else value.array()
                for name, value in step.items()
            }
            for step in steps
        ]

    async def open(self) -> None:
        """The server runs."""

    async def close(self) -> None:
        """It goes on."""

    async def send(self, number: int, fields: SequenceFields, marks: Marks) -> None:
        more: dict[str, Any] = {"version": self._side.version}
        if fields.id:
            more["correlation_id"] = fields.id
            more["sequence_start"], more["sequence_end"] = fields.start, fields.end
        if self._side.parameters:
            more["parameters"] = dict(self._side.parameters)
        inputs = self._inputs[number]
        try:
            if not self._side.streaming:
                await self._server.infer_async(self._side.model, inputs, **more)
                return
            async for _ in self._server.stream_async(self._side.model, inputs, **more):
                marks.response()
        except CoreError as error:
            raise Refused(json.dumps({"error": error.message})) from None
