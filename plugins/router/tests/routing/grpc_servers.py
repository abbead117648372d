"""Servers over gRPC whose responses a test defines, and calls as bytes."""

import asyncio
import contextlib
import queue
from concurrent.futures import ThreadPoolExecutor

import grpc

from frontends.grpc.protocol import messages

V2 = "/inference.GRPCInferenceService/"


class ScriptedGrpc(grpc.GenericRpcHandler):
    """A gRPC port. `respond(data, context)` answers ModelInfer, `stream(requests, context)` all others.

    calls   the paths of the calls
    """

    def __init__(self):
        self.calls = []
        self.respond = self.stream = None
        self._server = grpc.server(ThreadPoolExecutor(32))
        self._server.add_generic_rpc_handlers((self,))
        self.port = self._server.add_insecure_port("127.0.0.1:0")
        self._server.start()

    def service(self, details):
        self.calls.append(details.method)
        if details.method.endswith("ModelInfer"):
            return grpc.unary_unary_rpc_method_handler(lambda *given: self.respond(*given))
        return grpc.stream_stream_rpc_method_handler(lambda *given: self.stream(*given))

    def close(self):
        self._server.stop(0).wait()


class Resetting:
    """A gRPC port that resets each connection as soon as a call has come."""

    def __init__(self, thread):
        self.connections = 0
        self._thread = thread
        self._server = thread.run(asyncio.start_server(self._serve, "127.0.0.1", 0))
        self.port = self._server.sockets[0].getsockname()[1]

    async def _serve(self, reader, writer):
        self.connections += 1
        await reader.readexactly(24)  # the preface of HTTP/2
        received = b""
        while b"inference" not in received and b"\x00\x00\x01" not in received[9:]:
            received += await reader.read(4096)
            if len(received) > 60:
                break
        writer.transport.abort()

    def close(self):
        self._thread.loop.call_soon_threadsafe(self._server.close)


class RefusingLate:
    """A gRPC port that refuses each call (REFUSED_STREAM), once all of its request has come."""

    def __init__(self, thread):
        self.refused = 0
        self._thread = thread
        self._server = thread.run(asyncio.start_server(self._serve, "127.0.0.1", 0))
        self.port = self._server.sockets[0].getsockname()[1]

    async def _serve(self, reader, writer):
        settings, data, reset, ends = 4, 0, 3, 1
        writer.write(_frame(settings, 0, b""))
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            await reader.readexactly(24)  # the preface of HTTP/2
            while True:
                head = await reader.readexactly(9)
                await reader.readexactly(int.from_bytes(head[:3], "big"))
                if head[3] == data and head[4] & ends:
                    self.refused += 1
                    writer.write(
                        _frame(reset, int.from_bytes(head[5:], "big"), bytes([0, 0, 0, 7]))
                    )
        writer.close()

    def close(self):
        self._thread.loop.call_soon_threadsafe(self._server.close)


def _frame(kind, stream, payload):
    return len(payload).to_bytes(3, "big") + bytes([kind, 0]) + stream.to_bytes(4, "big") + payload


def request(model="m", *values, **parameters):
    """Return a request with one input x."""
    made = messages.ModelInferRequest(model_name=model, id=str(parameters.pop("id", "")))
    tensor = made.inputs.add(name="x", datatype="FP32", shape=[len(values)])
    tensor.contents.fp32_contents.extend(values)
    for name, value in parameters.items():
        kind = {bool: "bool_param", int: "int64_param", str: "string_param"}[type(value)]
        setattr(made.parameters[name], kind, value)
    return made


def response(model="m", id="", text=""):
    made = messages.ModelInferResponse(model_name=model, model_version="1", id=id)
    if text:
        made.parameters["text"].string_param = text
    return made


class Calls:
    """A client."""

    def __init__(self, port, tls=None):
        """Open a channel. tls: grpc.ChannelCredentials."""
        options = [("grpc.max_receive_message_length", -1)]
        address = f"127.0.0.1:{port}"
        self._channel = (
            grpc.insecure_channel(address, options)
            if tls is None
            else grpc.secure_channel(address, tls, options)
        )

    def unary(self, method="ModelInfer", answer=messages.ModelInferResponse):
        return self._channel.unary_unary(
            V2 + method, lambda each: each.SerializeToString(), answer.FromString
        )

    def infer(self, *given, timeout=20, metadata=None, **parameters):
        return self.unary()(request(*given, **parameters), timeout=timeout, metadata=metadata)

    def stream(self, requests, **more):
        method = self._channel.stream_stream(
            V2 + "ModelStreamInfer",
            lambda each: each.SerializeToString(),
            messages.ModelStreamInferResponse.FromString,
        )
        return method(requests, **more)

    def close(self):
        self._channel.close()


class Stream:
    """A stream whose requests a test sends one by one."""

    def __init__(self, port, **more):
        self._requests = queue.SimpleQueue()
        self._calls = Calls(port)
        self.call = self._calls.stream(iter(self._requests.get, None), **more)

    def send(self, *given, **parameters):
        self._requests.put(request(*given, **parameters))

    def end(self):
        self._requests.put(None)

    def receive(self):
        return next(self.call)

    def close(self):
        self.end()
        self._calls.close()
