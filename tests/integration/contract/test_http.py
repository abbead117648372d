"""The HTTP frontend keeps the contract of frontends, on both paths."""

import asyncio
import json

import numpy as np
from core_testing import FrontendClient, FrontendConformance

from core import dtypes
from core.errors import CoreError, Kind
from core.tensor import Tensor
from frontends.http.frontend import HttpFrontend

KINDS = {404: Kind.NOT_FOUND, 500: Kind.INTERNAL, 503: Kind.UNAVAILABLE}
SIZE = "inference-header-content-length"


class Connection:
    """HTTP/1.1, one request at a time."""

    def __init__(self, reader, writer):
        self.reader = reader
        self.writer = writer
        self.turn = asyncio.Lock()

    @property
    def ended(self):
        return self.writer.is_closing() or self.reader.at_eof()

    def abort(self):
        self.writer.transport.abort()

    def send(self, method, path, body, headers):
        lines = [f"{method} {path} HTTP/1.1", "Host: kit", f"Content-Length: {len(body)}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        self.writer.write("\r\n".join([*lines, "", ""]).encode() + body)

    async def head(self):
        first, *lines = (await self.reader.readuntil(b"\r\n\r\n")).decode().strip().split("\r\n")
        headers = dict(line.lower().split(": ", 1) for line in lines)
        return int(first.split()[1]), headers

    async def ask(self, method, path, body=b"", headers=()):
        async with self.turn:
            try:
                self.send(method, path, body, dict(headers))
                status, found = await self.head()
                content = await self.reader.readexactly(int(found.get("content-length", 0)))
            except BaseException:
                self.abort()
                raise
        if status != 200:
            raise refused(status, content)
        return found, content


def refused(status, content):
    text = json.loads(content).get("error", content.decode()) if content else f"status {status}"
    return CoreError(KINDS.get(status, Kind.INVALID), text)


class HttpClient(FrontendClient):
    async def open(self):
        self.streams = []
        self.connection = await self.connect()

    async def connect(self):
        return Connection(*await asyncio.open_connection(self.host, self.port))

    async def close(self):
        for each in (self.connection, *self.streams):
            each.abort()

    async def ask(self, *args):
        if self.connection.ended:
            self.connection = await self.connect()
        return await self.connection.ask(*args)

    async def infer(self, model, inputs, *, version="", outputs=()):
        tensors = [Tensor.of(name, array) for name, array in inputs.items()]
        head = json.dumps(
            {
                "inputs": [
                    {
                        "name": each.name,
                        "datatype": each.dtype.name,
                        "shape": each.shape,
                        "parameters": {"binary_data_size": each.byte_size},
                    }
                    for each in tensors
                ],
                "outputs": [
                    {"name": name, "parameters": {"binary_data": True}} for name in outputs
                ],
                "parameters": {} if outputs else {"binary_data_output": True},
            }
        ).encode()
        part = f"/versions/{version}" if version else ""
        found, content = await self.ask(
            "POST",
            f"/v2/models/{model}{part}/infer",
            head + b"".join(bytes(each.raw) for each in tensors),
            {SIZE: len(head)},
        )
        size = int(found.get(SIZE, len(content)))  # without it there are no bytes behind the JSON
        document, raw = json.loads(content[:size]), content[size:]
        answer = {}
        for output in document["outputs"]:
            length = output.get("parameters", {}).get("binary_data_size", 0)
            dtype = dtypes.BY_NAME[output["datatype"]]
            tensor = Tensor(output["name"], dtype, tuple(output["shape"]), raw=raw[:length])
            answer[output["name"]], raw = tensor.array, raw[length:]
        return answer

    async def stream(self, model, inputs):
        connection = await self.connect()
        self.streams.append(connection)
        body = json.dumps({name: array.tolist() for name, array in inputs.items()}).encode()
        connection.send("POST", f"/v2/models/{model}/generate_stream", body, {})
        status, found = await connection.head()
        if status != 200:
            raise refused(status, await connection.reader.readexactly(int(found["content-length"])))
        if "content-length" in found:  # of a stream without events
            connection.abort()
            return
        while size := int(await connection.reader.readline(), 16):
            chunk = (await connection.reader.readexactly(size + 2))[:-2]
            for event in filter(None, chunk.split(b"\n\n")):
                document = json.loads(event.removeprefix(b"data: "))
                yield {"y": np.array(document["y"])}
        connection.abort()

    async def too_large(self):
        data = [0] * (1 << 20)  # a limit of JSON, not of the bytes behind it
        x = {"name": "x", "datatype": "FP32", "shape": [len(data)], "data": data}
        await self.ask("POST", "/v2/models/echo/infer", json.dumps({"inputs": [x]}).encode())

    async def live(self):
        await self.ask("GET", "/v2/health/live")
        return True

    async def ready(self):
        await self.ask("GET", "/v2/health/ready")
        return True

    async def model_ready(self, model):
        await self.ask("GET", f"/v2/models/{model}/ready")
        return True

    async def metadata(self):
        return json.loads((await self.ask("GET", "/v2"))[1])

    async def model_metadata(self, model):
        return json.loads((await self.ask("GET", f"/v2/models/{model}"))[1])


class TestWithTheLane(FrontendConformance):
    frontend = HttpFrontend
    client = HttpClient
    name = "http"
    options = {"http_max_input_size": 1 << 20}


class TestWithAiohttpAlone(TestWithTheLane):
    options = {"http_lane": "aiohttp", "http_max_input_size": 1 << 20}
