"""A frontend: with --lines-port=N, a TCP client sends a line of JSON and receives one."""

import asyncio
import json
from contextlib import closing, suppress

import numpy as np

import core
from core.errors import Kind, unavailable


@core.hookimpl
def core_add_options(parser):
    parser.add("lines-port", -1, "Port of 127.0.0.1 for lines of JSON; 0: any free one, -1: none.")


class LineFrontend:
    name, tcp = "lines", None

    def __init__(self, server):
        self.server, self.port = server, server.options.added["lines_port"]
        self.enabled, self.tasks = self.port >= 0, set()

    async def start(self):
        try:
            self.tcp = await asyncio.start_server(self.serve, "127.0.0.1", self.port, limit=2**23)
        except OSError as error:
            raise unavailable(f"cannot listen on port {self.port}: {error}") from error
        self.port = self.tcp.sockets[0].getsockname()[1]

    async def stop(self, timeout_s):
        if self.tcp is not None:
            self.tcp.close()
        with suppress(asyncio.TimeoutError):  # cancels the tasks, and so their requests
            await asyncio.wait_for(asyncio.gather(*self.tasks, return_exceptions=True), timeout_s)

    async def serve(self, reader, writer):
        self.tasks.add(task := asyncio.current_task())
        task.add_done_callback(self.tasks.discard)
        with closing(writer):
            try:
                line = await asyncio.wait_for(reader.readline(), timeout=10)
                response = await answer(self.server, **json.loads(line))
            except Exception as error:
                response = {"error": str(error), "kind": getattr(error, "kind", Kind.INVALID).name}
            writer.write(json.dumps(response, default=bytes.decode).encode() + b"\n")


async def answer(server, model="", inputs=None, version=-1, outputs=()):
    health = server.control.health
    if inputs is None:
        return {"ready": await (health.model_ready(model, version) if model else health.ready())}
    specs = server.models.signature(model, version).inputs
    tensors = {n: core.Tensor.of(n, np.array(x, specs[n].dtype.numpy)) for n, x in inputs.items()}
    wanted = tuple(map(core.RequestedOutput, outputs))
    request = core.InferenceRequest(model, tensors, model_version=version, outputs=wanted)
    response = await server.models.infer(request)
    return {"outputs": {each.name: each.array.tolist() for each in response.outputs}}
