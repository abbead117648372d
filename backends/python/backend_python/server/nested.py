"""The calls of other models that a child makes: INFER in, INFERRED out.

Not thread-safe: call from the event loop only. Nothing blocks here, so any number of calls, at any depth of
nesting, can run at the same time.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from backend_python import layout, protocol
from backend_python.protocol import Frame, ProtocolError
from backend_python.server import bls
from backend_python.server.executions import Executions
from backend_python.server.outbox import Outbox
from backend_python.server.process import Process
from backend_python.server.requests import COPIED_ON_THE_LOOP, Encoder, Parts, write
from core import dtypes
from core.errors import CoreError, cancelled, internal, unsupported
from core.request import InferenceRequest, RequestedOutput
from core.response import InferenceResponse, Reply
from core.tensor import Tensor

Item = InferenceResponse | CoreError | None


class Call:
    """One INFER whose last answer was not sent to the child yet."""

    __slots__ = ("copying", "number", "reply", "stopped", "takes", "waiting")

    def __init__(self, number: int, takes: frozenset[bytes]):
        self.number = number
        self.takes = takes  # UUIDs of GPUs on which the child takes the answers
        self.reply: Reply | None = None  # None if it was refused at once
        # Answers, each with True if it is the last.
        self.waiting: deque[tuple[Item, bool]] = deque()
        self.copying = False  # a thread copies an answer; later answers wait
        self.stopped = False  # the child takes no more answers


class NestedCalls:
    """The calls of one child.

    server      has the models to call; None if the model runs without a server
    outbox      sends messages to the child
    executions  of the child: the batches that its calls belong to
    """

    def __init__(
        self,
        server: Any,
        process: Process,
        loop: asyncio.AbstractEventLoop,
        outbox: Outbox,
        executions: Executions,
    ):
        self._server = server
        self._process = process
        self._loop = loop
        self._outbox = outbox
        self._encoder = Encoder(lending=process.lending)
        self._executions = executions
        self._calls: dict[int, Call] = {}

    def begin(self, frame: Frame) -> None:
        """Handle INFER: pass its request to the model that it names, and listen for the answers.

        If the request is wrong or refused, the error is sent as its only answer.
        """
        try:
            request, decoupled, takes, outer = self._request(frame)
        except CoreError as error:
            self._calls[frame.number] = refused = Call(frame.number, frozenset())
            self._arrived(refused, error, True)
            return
        call = self._calls[frame.number] = Call(frame.number, takes)
        try:
            if self._server is None:
                raise unsupported("there is no server whose models can be called")
            if takes:
                from backend_python.server import devices

                devices.keep_outputs(self._server, request)
            call.reply = bls.begin(self._server, request, decoupled, outer)
        except CoreError as error:
            self._arrived(call, error, True)
        else:
            call.reply.listen(partial(self._arrived, call))

    def stop(self, frame: Frame) -> None:
        """Handle STOP: cancel the call. If the message says so, drop the answers that still arrive."""
        (unwanted,) = protocol.INDEX.unpack(frame.content)
        if (call := self._calls.get(frame.number)) is None:
            return  # its last answer is under way
        if unwanted:
            self._forget(call)
        if call.reply is not None:
            call.reply.cancel()

    def close(self, *, telling: bool) -> None:
        """Cancel all calls. If `telling`, the child lives on: answer each call with the error CANCELLED."""
        for call in list(self._calls.values()):
            self._forget(call)
            if telling:
                self._tell(call, None, self._encoder.answer(cancelled()), True)
            if call.reply is not None:
                call.reply.cancel()

    def _request(
        self, frame: Frame
    ) -> tuple[InferenceRequest, bool, frozenset[bytes], Sequence[InferenceRequest]]:
        """Return the request of an INFER, whether it is decoupled, the GPUs on which its answers may stay,
        and the requests to which it belongs. Raise CoreError if two inputs have the same name."""
        content = frame.content
        offset, size, length = protocol.REGION.unpack_from(content)
        end = protocol.REGION.size + length
        found, at, stop = self._process.outputs.tensors(content, end, offset, size)
        (places,) = layout.request_places(json.loads(content[protocol.REGION.size : end]), size)
        region = memoryview(found)[at:]
        fields = json.loads(content[end:stop])
        name, version, decoupled, request_id, sequence, flags, timeout = fields[:7]
        parameters, outputs, trace, outer, *gpus = fields[7:]
        request = InferenceRequest(
            name,
            bls.by_name([self._tensor(place, region) for place in places]),
            model_version=version,
            id=request_id,
            outputs=tuple(map(RequestedOutput, outputs)),
            parameters=json.loads(parameters) if parameters else {},
            correlation_id=sequence,
            flags=flags,
            timeout_us=timeout,
            trace=None if trace is None else self._executions.trace_of(*trace),
        )
        takes = frozenset(map(bytes.fromhex, gpus[0] if gpus and self._process.lending else ()))
        found = () if outer is None else self._executions.outer_of(*outer)
        return request, decoupled, takes, found

    def _tensor(self, place: layout.Place, region: memoryview) -> Tensor:
        data = region[place.start : place.start + place.size]
        if not place.lent:
            return Tensor(place.name, dtypes.BY_NUMBER[place.number], place.shape, data)
        if self._process.lending is None:
            raise ProtocolError("tensors that are lent, where nobody has GPUs")
        return self._process.lending.tensor(place, data)

    # answers -----------------------------------------------------------------

    def _arrived(self, call: Call, item: Item, final: bool) -> None:
        if not call.stopped:
            call.waiting.append((item, final))
            self._pass_on(call)

    def _pass_on(self, call: Call) -> None:
        while call.waiting and not call.copying:
            item, final = call.waiting.popleft()
            if (
                call.takes
                and isinstance(item, InferenceResponse)
                and any(type(each) is not Tensor for each in item.outputs)
            ):
                self._encode_there(call, item, final)
                return
            parts = self._encoder.answer(item)
            if parts.size > COPIED_ON_THE_LOOP:
                inputs = self._process.inputs
                offset = inputs.allocate(parts.size)
                call.copying = True
                copying = self._loop.run_in_executor(
                    None, write, inputs.memory, offset, parts.tensors
                )
                tell = partial(self._tell, call, offset, parts, final)
                copying.add_done_callback(partial(self._copied, call, tell))
                return
            self._tell(call, None, parts, final)

    def _encode_there(self, call: Call, item: InferenceResponse, final: bool) -> None:
        """Encode an answer with tensors on a GPU on another thread, because that may wait for the GPU."""
        call.copying = True
        encoding = self._loop.run_in_executor(None, self._encoder.answer_there, item, call.takes)
        encoding.add_done_callback(partial(self._encoded, call, final))

    def _encoded(self, call: Call, final: bool, encoding: asyncio.Future[Parts]) -> None:
        error = encoding.exception()
        if error is None:
            parts = encoding.result()
        else:
            problem = error if isinstance(error, CoreError) else internal(repr(error))
            parts, final = self._encoder.answer(problem), True
            self._forget(call)
            if call.reply is not None:
                call.reply.cancel()
        self._copied(call, partial(self._tell, call, None, parts, final), encoding)

    def _copied(self, call: Call, tell: Callable[[], None], _: asyncio.Future[Any]) -> None:
        """Send a large answer whose copy into its region is complete.

        It is sent even if the child takes no more answers, since only the child can release the region.
        """
        call.copying = False
        tell()
        self._pass_on(call)

    def _tell(self, call: Call, offset: int | None, parts: Parts, final: bool) -> None:
        if final:
            self._calls.pop(call.number, None)
        flags = (protocol.FINAL if final else 0) | (protocol.LENT if parts.lends else 0)
        fixed = protocol.INDEX_FLAGS.pack(0, flags)
        self._outbox.send_tensors(protocol.INFERRED, call.number, fixed, parts, offset)

    def _forget(self, call: Call) -> None:
        call.stopped = True
        call.waiting.clear()
        self._calls.pop(call.number, None)
