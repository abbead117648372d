"""Requests as Serve passes them to the forwarder, and what the forwarder writes for them."""

import asyncio
import json

from core_ray.forwarding import HttpForwarder


class Exchange:
    """One request to the forwarder, as Serve passes it: ASGI messages in, and out."""

    def __init__(self, method, path, body=(), headers=(), root_path="", query=b""):
        self.scope = {
            "type": "http",
            "method": method,
            "path": root_path + path,
            "raw_path": (root_path + path).encode(),
            "root_path": root_path,
            "query_string": query,
            "headers": [(b"host", b"example.com"), *headers],
        }
        pieces = list(body) or [b""]
        self._in = [
            {"type": "http.request", "body": each, "more_body": at + 1 < len(pieces)}
            for at, each in enumerate(pieces)
        ]
        self.sent = []

    async def receive(self):
        return self._in.pop(0)

    async def send(self, message):
        self.sent.append(message)

    @property
    def status(self):
        return self.sent[0]["status"]

    @property
    def fields(self):
        return dict(self.sent[0]["headers"])

    @property
    def pieces(self):
        return [each["body"] for each in self.sent[1:] if each["body"]]

    @property
    def json(self):
        return json.loads(b"".join(self.pieces))


def pass_on(server, exchange):
    return pass_on_to(f"http://127.0.0.1:{server.port}", exchange)


def pass_on_to(url, exchange):
    async def run():
        forwarder = HttpForwarder(url)
        try:
            await forwarder(exchange.scope, exchange.receive, exchange.send)
        finally:
            forwarder.close()

    asyncio.run(run())
    return exchange


def infer(model, **inputs):
    described = [
        {"name": name, "shape": list(each.shape), "datatype": kind, "data": each.ravel().tolist()}
        for name, (kind, each) in inputs.items()
    ]
    return json.dumps({"id": "mine", "inputs": described}).encode()


def length(*pieces):
    return (b"content-length", str(sum(map(len, pieces))).encode())


def written(exchange, request_id=str):
    """Return what the forwarder writes for a request: its head in lines, and its body."""
    found = []

    async def answer(reader, writer):
        head = await reader.readuntil(b"\r\n\r\n")
        body = b""
        if b"transfer-encoding: chunked" in head:
            body = await reader.readuntil(b"0\r\n\r\n")
        elif b"content-length: " in head:
            body = await reader.readexactly(int(head.partition(b"content-length: ")[2].split()[0]))
        found.append((head.decode().splitlines()[:-1], body))
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        await writer.drain()
        writer.close()

    async def run():
        async with await asyncio.start_server(answer, "127.0.0.1", 0) as listening:
            port = listening.sockets[0].getsockname()[1]
            forwarder = HttpForwarder(f"http://127.0.0.1:{port}", request_id)
            await forwarder(exchange.scope, exchange.receive, exchange.send)
            forwarder.close()

    asyncio.run(asyncio.wait_for(run(), 20))
    return found[0]
