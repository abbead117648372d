"""A frontend of one line of JSON for each message, and its client: small enough to be broken in many ways."""

import asyncio
import base64
import json

import numpy as np

from core import dtypes
from core.errors import CoreError, Kind, unavailable
from core.request import InferenceRequest, RequestedOutput
from core.tensor import Tensor
from core.testing import FrontendClient

LIMIT = 4 << 20


def to_json(tensor):
    raw = base64.b64encode(bytes(tensor.raw)).decode()
    return {"name": tensor.name, "dtype": tensor.dtype.name, "shape": tensor.shape, "raw": raw}


def from_json(found):
    raw = base64.b64decode(found["raw"])
    return Tensor(found["name"], dtypes.BY_NAME[found["dtype"]], tuple(found["shape"]), raw=raw)


class LineFrontend:
    name = "line"
    enabled = True
    limit = LIMIT

    def __init__(self, server):
        self.server = server
        self.port = 0
        self.writers = set()
        self.running = set()
        self.listening = None

    async def start(self):
        added = self.server.options.added
        try:
            self.listening = await asyncio.start_server(
                self.serve, added["line_address"], added["line_port"], limit=self.limit
            )
        except OSError as error:
            raise unavailable(f"port {added['line_port']} cannot be opened: {error}") from error
        self.port = self.listening.sockets[0].getsockname()[1]

    async def stop(self, timeout_s):
        if self.listening is not None:
            self.listening.close()
        if self.running:
            await asyncio.wait(self.running, timeout=timeout_s)
        self.cut()

    def cut(self):
        for writer in self.writers:
            writer.transport.abort()

    async def serve(self, reader, writer):
        self.writers.add(writer)
        try:
            while line := await self.line(reader):
                task = asyncio.ensure_future(self.answer(json.loads(line), reader, writer))
                self.running.add(task)
                try:
                    await task
                finally:
                    self.running.discard(task)
        except (ConnectionError, ValueError):  # the client has gone, or its line is too long
            pass
        finally:
            self.writers.discard(writer)
            writer.close()

    async def line(self, reader):
        return await reader.readline()

    async def answer(self, message, reader, writer):
        try:
            if message["method"] in ("infer", "stream"):
                await self.infer(message, reader, writer)
                return
            found = getattr(self, message["method"])(*message["args"])
            self.write(writer, {"value": found})
        except CoreError as error:
            self.write_error(writer, error)
        await writer.drain()

    def write(self, writer, document):
        writer.write(json.dumps(document).encode() + b"\n")

    def write_error(self, writer, error):
        self.write(writer, {"error": error.message, "kind": error.kind.name})

    async def infer(self, message, reader, writer):
        reply = self.server.models.infer(self.request(message))
        watch = asyncio.ensure_future(self.watch(reader, reply))
        try:
            await self.send(message, reply, writer)
        finally:
            watch.cancel()

    async def watch(self, reader, reply):
        """Cancel the request when the client goes: it sends nothing while it waits."""
        while not reader.at_eof():
            await asyncio.sleep(0.005)
        self.gone(reply)

    def gone(self, reply):
        reply.cancel()

    async def send(self, message, reply, writer):
        if message["method"] == "infer":
            self.write(writer, self.rendered(await reply))
        else:
            async for item in reply:
                if isinstance(item, CoreError):
                    raise item
                self.write(writer, self.rendered(item))
                await writer.drain()
            self.write(writer, {"end": True})
        await writer.drain()

    def request(self, message):
        version = message["version"]
        return InferenceRequest(
            message["model"],
            {each["name"]: from_json(each) for each in message["inputs"]},
            model_version=int(version or -1),
            outputs=tuple(RequestedOutput(name) for name in message["outputs"]),
        )

    def rendered(self, response):
        return {"outputs": [to_json(each) for each in response.outputs]}

    def live(self):
        return self.server.control.health.live()

    def ready(self):
        return self.server.control.health.ready_here()

    def model_ready(self, model):
        return self.server.models.is_ready(model)

    def metadata(self):
        return self.server.metadata()

    def model_metadata(self, model):
        return self.server.models.metadata(model)


class LineClient(FrontendClient):
    async def open(self):
        # Wider than the server's, which is the one that `too_large` is to meet: echo answers twice the input.
        self.reader, self.writer = await asyncio.open_connection(
            self.host, self.port, limit=3 * LIMIT
        )

    async def close(self):
        self.writer.transport.abort()

    async def call(self, method, *args, **fields):
        self.writer.write(json.dumps({"method": method, "args": args, **fields}).encode() + b"\n")
        try:
            return await self.read()
        except asyncio.CancelledError:
            self.writer.transport.abort()
            raise

    async def read(self):
        line = await self.reader.readline()
        if not line:
            raise ConnectionError("the server has gone")
        found = json.loads(line)
        if "error" in found:
            raise CoreError(Kind[found["kind"]], found["error"])
        return found

    def fields(self, model, inputs, version="", outputs=()):
        tensors = [to_json(Tensor.of(name, array)) for name, array in inputs.items()]
        return {"model": model, "inputs": tensors, "version": version, "outputs": list(outputs)}

    async def infer(self, model, inputs, *, version="", outputs=()):
        found = await self.call("infer", **self.fields(model, inputs, version, outputs))
        return {each["name"]: from_json(each).array for each in found["outputs"]}

    async def stream(self, model, inputs):
        found = await self.call("stream", **self.fields(model, inputs))
        while "end" not in found:
            yield {each["name"]: from_json(each).array for each in found["outputs"]}
            found = await self.read()

    async def too_large(self):
        await self.infer("echo", {"x": np.zeros(LIMIT // 4, np.float32)})

    async def live(self):
        return (await self.call("live"))["value"]

    async def ready(self):
        return (await self.call("ready"))["value"]

    async def model_ready(self, model):
        return (await self.call("model_ready", model))["value"]

    async def metadata(self):
        return (await self.call("metadata"))["value"]

    async def model_metadata(self, model):
        return (await self.call("model_metadata", model))["value"]
