"""Calls and streams of gRPC, over separate channels."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from typing import Any

import grpc
import grpc.aio
import numpy as np
import tritonclient.grpc.service_pb2 as pb

_SERVICE = "/inference.GRPCInferenceService"


class Refused(Exception):
    """The message of an error."""


def channel(port: int, root: bytes) -> grpc.aio.Channel:
    """A channel over TLS, with a connection that no other channel has."""
    options = [("grpc.use_local_subchannel_pool", 1), ("grpc.enable_retries", 0)]
    return grpc.aio.secure_channel(
        f"localhost:{port}", grpc.ssl_channel_credentials(root), options=options
    )


def infer_of(found: grpc.aio.Channel) -> Any:
    return found.unary_unary(
        f"{_SERVICE}/ModelInfer",
        pb.ModelInferRequest.SerializeToString,
        pb.ModelInferResponse.FromString,
    )


def stream_of(found: grpc.aio.Channel) -> Any:
    return found.stream_stream(
        f"{_SERVICE}/ModelStreamInfer",
        pb.ModelInferRequest.SerializeToString,
        pb.ModelStreamInferResponse.FromString,
    )


def message(
    model: str,
    number: int,
    inputs: Sequence[tuple[str, str, np.ndarray[Any, Any]]],
    **parameters: Any,
) -> pb.ModelInferRequest:
    """A request; its id is its number. Parameters are integers or booleans."""
    found = pb.ModelInferRequest(model_name=model, id=str(number))
    for name, datatype, array in inputs:
        found.inputs.add(name=name, datatype=datatype, shape=array.shape)
        found.raw_input_contents.append(array.tobytes())
    for key, value in parameters.items():
        if isinstance(value, bool):
            found.parameters[key].bool_param = value
        else:
            found.parameters[key].int64_param = value
    return found


def numbers(answer: pb.ModelInferResponse, index: int = 0) -> list[int]:
    """The values of an output."""
    return [int(each) for each in np.frombuffer(answer.raw_output_contents[index], np.int32)]


class Stream:
    """One ModelStreamInfer; it passes responses to their callers, by the id of the request.

    unknown   responses without a caller
    """

    def __init__(self, found: grpc.aio.Channel) -> None:
        self.broken = ""
        self.unknown: list[str] = []
        self._call = stream_of(found)()
        self._waiting: dict[str, asyncio.Queue[pb.ModelInferResponse | Exception]] = {}
        self._reader = asyncio.get_running_loop().create_task(self._read())
        self._writing = asyncio.Lock()

    async def ask(self, request: pb.ModelInferRequest) -> list[pb.ModelInferResponse]:
        """All answers of a request, up to the final one. Raises Refused."""
        waiting = self._waiting[request.id] = asyncio.Queue()
        answers: list[pb.ModelInferResponse] = []
        try:
            if self.broken:
                raise Refused(self.broken)
            try:
                async with self._writing:
                    await self._call.write(request)
            except (grpc.aio.AioRpcError, asyncio.InvalidStateError, grpc.aio.UsageError):
                await self._reader  # it knows why
                raise Refused(self.broken or "closed: the stream takes no request") from None
            while True:
                answer = await waiting.get()
                if isinstance(answer, Exception):
                    raise answer
                if len(answer.outputs):
                    answers.append(answer)
                if answer.parameters["triton_final_response"].bool_param:
                    return answers
        finally:
            del self._waiting[request.id]

    def describe(self) -> str:
        """Return details that may explain a missing response."""
        return (
            f"{len(self._waiting)} wait, one is being sent: {self._writing.locked()}, "
            f"the reader has ended: {self._reader.done()}, the call: {self._call.done()}"
        )

    async def _read(self) -> None:
        try:
            async for answer in self._call:
                found = answer.infer_response
                waiting = self._waiting.get(found.id)
                if waiting is None:
                    self.unknown.append(f"{found.id} {answer.error_message}")
                elif answer.error_message:
                    waiting.put_nowait(Refused(answer.error_message))
                else:
                    waiting.put_nowait(found)
            self.broken = "closed: the server has ended the stream"
        except grpc.aio.AioRpcError as error:
            self.broken = reason(error)
        except asyncio.CancelledError:
            self.broken = "closed: by the client"
        except Exception as error:  # fail the callers, since this stream has no reader now
            self.broken = f"the reader of a stream has ended: {error!r}"
            raise
        finally:
            for waiting in self._waiting.values():
                waiting.put_nowait(Refused(self.broken))

    async def close(self) -> None:
        """End it as a client does that has nothing more to ask."""
        with contextlib.suppress(Exception):
            await self._call.done_writing()
        _, late = await asyncio.wait([self._reader], timeout=10)
        if late:
            self._call.cancel()
            await asyncio.wait([self._reader])


def reason(error: grpc.aio.AioRpcError) -> str:
    """The server's message; "closed: …" for an error of the connection."""
    details = error.details() or ""
    if error.code() is grpc.StatusCode.UNAVAILABLE and _of_the_connection(details):
        return f"closed: {details}"
    return details


_CONNECTION = (
    "failed to connect",
    "Connection reset",
    "Socket closed",
    "GOAWAY",
    "recvmsg",
    "Broken pipe",
    "Connection refused",
    "transport",
    "Stream removed",
    "RST_STREAM",
    "EOF",
)


def _of_the_connection(details: str) -> bool:
    return any(word in details for word in _CONNECTION)
