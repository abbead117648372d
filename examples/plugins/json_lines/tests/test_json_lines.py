"""The contract of frontends over lines of JSON."""

import asyncio
import json

import core_json_lines
import numpy as np
import pytest
from core_testing import FrontendClient, FrontendConformance

from core.errors import CoreError, Kind


class LineClient(FrontendClient):
    async def open(self):
        self.calls = set()
        await self.ask({})

    async def close(self):
        for each in self.calls:
            each.cancel()

    async def ask(self, line):
        call = asyncio.ensure_future(self.call(json.dumps(line, default=bytes.decode)))
        self.calls.add(call)
        call.add_done_callback(self.calls.discard)
        return await call

    async def call(self, line):
        reader, writer = await asyncio.open_connection(self.host, self.port)
        try:
            writer.write(line.encode() + b"\n")
            found = json.loads(await reader.read())
        finally:
            writer.close()
        if "error" in found and "kind" in found:
            raise CoreError(Kind[found["kind"]], found["error"])
        return found

    async def infer(self, model, inputs, *, version="", outputs=()):
        line = {"model": model, "inputs": {name: x.tolist() for name, x in inputs.items()}}
        if version:
            line["version"] = int(version)
        found = await self.ask({**line, "outputs": outputs})
        types = {name: array.dtype for array in inputs.values() for name in found["outputs"]}
        return {name: as_array(data, types[name]) for name, data in found["outputs"].items()}

    async def live(self):
        return "ready" in await self.ask({})

    async def ready(self):
        return (await self.ask({}))["ready"]

    async def model_ready(self, model):
        return (await self.ask({"model": model}))["ready"]


def as_array(data, dtype):
    if dtype.kind == "O":
        data = [each.encode() for each in data]
    return np.array(data, dtype)


class TestLines(FrontendConformance):
    frontend = core_json_lines.LineFrontend
    client = LineClient
    name = "lines"
    supports = set()

    @pytest.mark.parametrize("line", ['{"model": ', "[1]", '{"unknown": 1}', "x" * (1 << 23)])
    def test_a_line_that_is_no_request_is_refused(self, line):
        async def body(stage, client):
            with pytest.raises(CoreError) as caught:
                await client.call(line)

            assert caught.value.kind is Kind.INVALID
            assert await client.live()

        self.play(body)
