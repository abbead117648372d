"""Decode requests from a shared-memory region and encode answers into one.

For calls of other models: encode requests and decode answers.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from backend_python import layout, protocol
from backend_python.api import request as api_request
from backend_python.api.datatypes import BYTES
from backend_python.api.errors import ErrorCode, TritonError
from backend_python.api.host import Host, Key
from backend_python.api.request import (
    TRITONSERVER_REQUEST_RELEASE_RESCHEDULE,
    InferenceRequest,
)
from backend_python.api.response import InferenceResponse
from backend_python.api.tensor import Tensor, received
from backend_python.arena import ALIGNMENT, Receiver
from backend_python.items import Known, joined, tensors
from backend_python.protocol import Frame
from backend_python.strings import speakable

if TYPE_CHECKING:
    from backend_python.child.lent import Lending, Lends

_LAST = ALIGNMENT - 1


class Parts(NamedTuple):
    """The variable parts of a message: its layout and its tensors."""

    layout: bytes
    # Contents of the region, arrays or bytes, each at the next multiple of ALIGNMENT.
    tensors: list[Any]
    size: int  # of the region


Entry = tuple[Any, ...]  # name, datatype number, shape, size in bytes; if lent, also how: LENT, …


class RequestDecoder:
    """Decoder of EXECUTE messages: EXECUTE → the model's InferenceRequests.

    Not thread-safe: call from the thread that executes only.

    lending   lends tensors on GPUs; None if there are no GPUs
    """

    def __init__(
        self,
        host: Host,
        inputs: Receiver,
        output_names: Sequence[str],
        decoupled: bool,
        lending: Lending | None = None,
    ):
        self._lending = lending
        self._host = host
        self._in = inputs
        self._all = frozenset(output_names)
        self._decoupled = decoupled
        self._items = Known(layout.request_item)

    def requests(self, frame: Frame) -> list[InferenceRequest]:
        content = frame.content
        offset, size, length = protocol.REGION.unpack_from(content)
        end = protocol.REGION.size + length
        region, _, stop = self._in.tensors(content, end, offset, size)
        described = content[protocol.REGION.size : end]
        laid = self._items.of(described, size)
        if laid.lends and self._lending is not None:
            places = layout.request_places(json.loads(described), size)
            inputs = self._lending.tensors(places, region)
        else:
            inputs = tensors(laid, region)
        requests = api_request.all_received(
            self._host, frame.number, inputs, self._all, self._decoupled
        )
        if stop != end:
            for request, fields in zip(requests, protocol.from_json(content[end:stop])):
                if type(fields) is str:  # only an id, the most common case
                    request._request_id = fields
                elif fields is not None:
                    self._tell(request, fields)
        return requests

    def _tell(self, request: InferenceRequest, fields: list[Any]) -> None:
        """Set the fields of a request other than its tensors from `fields` of EXECUTE.

        Also note which outputs may stay on a GPU, if this child lends such tensors.
        """
        request._request_id, request._correlation_id, request._flags, request._timeout = fields[:4]
        request._parameters, wanted, request._trace = fields[4:7]
        if wanted is not None:
            request._outputs = frozenset(wanted)
        if len(fields) > 7 and fields[7] and self._lending is not None:
            self._lending.staying[request._key] = fields[7]


class AnswerEncoder:
    """Encoder of answers: InferenceResponses → a layout and the tensors of its region. Thread-safe.

    lending    lends tensors on GPUs; None if there are no GPUs
    declared   names of the model's outputs and states, if the server checks outputs. Undeclared outputs are
               then sent, so that the server refuses them. None: undeclared outputs are dropped
    """

    def __init__(self) -> None:
        self.lending: Lending | None = None
        self.declared: frozenset[str] | None = None
        self._known = layout.Memory()  # items of outputs as JSON, by their entries

    def batch(
        self, requests: list[InferenceRequest], responses: list[InferenceResponse | None]
    ) -> Parts:
        """Return the layout and tensors of EXECUTED. A response is None for a request that has none."""
        if self.lending is not None and self.lending.staying:
            return self._batch_there(self.lending, requests, responses)
        return self._batch(requests, responses, None)

    def _batch(
        self,
        requests: list[InferenceRequest],
        responses: list[InferenceResponse | None],
        lends: Lends | None,
    ) -> Parts:
        tensors: list[Any] = []
        items: list[bytes] = []
        end = 0
        for request, response in zip(requests, responses):
            if response is not None:
                if lends is not None:
                    lends.staying = lends.lending.staying.pop(request._key, {})
                item, end = self._item(response, request._outputs, tensors, end, lends)
                items.append(item)
            elif request._release_flags == TRITONSERVER_REQUEST_RELEASE_RESCHEDULE:
                items.append(b"true")
            else:
                items.append(b"null" if request._sender is None else b"false")
        return Parts(joined(items), tensors, end)

    def _batch_there(
        self,
        lending: Lending,
        requests: list[InferenceRequest],
        responses: list[InferenceResponse | None],
    ) -> Parts:
        """Do what `_batch` does, but lend the outputs that may stay on a GPU.

        If encoding fails, take back the tensors that were already lent.
        """
        lends = lending.lends({})
        try:
            parts = self._batch(requests, responses, lends)
        except BaseException:
            lends.undo()
            raise
        for request in requests:
            if request._sender is None:  # it was answered, or will get no answer
                lending.staying.pop(request._key, None)
        return parts

    def one(
        self,
        response: InferenceResponse | None,
        wanted: frozenset[str],
        key: Key | None = None,
        final: bool = False,
    ) -> Parts:
        """Return the layout and tensors of RESPOND. `response` is one answer, or None for only the end.

        key     of the request
        final   True if this is the last answer of the request
        """
        lends = None
        if self.lending is not None and self.lending.staying and key is not None:
            staying = self.lending.staying
            found = staying.pop(key, None) if final else staying.get(key)
            lends = self.lending.lends(found) if found else None
        if response is None:
            return Parts(b"[null]", [], 0)
        tensors: list[Any] = []
        try:
            item, end = self._item(response, wanted, tensors, 0, lends)
        except BaseException:
            if lends is not None:
                lends.undo()
            raise
        return Parts(b"[%s]" % item, tensors, end)

    def _item(
        self,
        response: InferenceResponse,
        wanted: frozenset[str],
        tensors: list[Any],
        end: int,
        lends: Lends | None,
    ) -> tuple[bytes, int]:
        """Return the layout item of one answer, and the new size of the region.

        Append its tensors to `tensors`, whose size in the region so far is `end`.
        """
        error = response._error
        if error is not None:
            failure = (int(error._code), speakable(error._message))
            return protocol.to_json(((), failure, "")), end
        outputs = [tensor for tensor in response._outputs if tensor._name in wanted]
        if len(outputs) < len(response._outputs) and self.declared is not None:
            outputs += [each for each in response._outputs if each._name not in self.declared]
        entries, end = _entries(outputs, tensors, end, lends)
        if response._parameters:
            return protocol.to_json((entries, None, response._parameters)), end
        item = self._known.get(entries)
        if item is None:
            item = protocol.to_json((entries, None, ""))
            self._known.add(entries, len(item), item)
        return item, end


def call(
    request: InferenceRequest,
    decoupled: bool,
    batch: int | None,
    lends: Lends | None = None,
    gpus: list[str] | None = None,
) -> tuple[Parts, bytes]:
    """Encode a call of another model: return the layout and tensors of INFER, and its fields.

    Raise TypeError or ValueError if a field does not have the type that InferenceRequest declares.

    batch   number of the batch to which the call belongs; None if unknown. If the trace of `request` names a
            request, this is not used
    lends   lends the inputs on GPUs; None if they are copied
    gpus    UUIDs of the GPUs on which the outputs may stay; None or empty if they may not
    """
    tensors: list[Any] = []
    entries, end = _entries(request._inputs, tensors, 0, lends)
    sequence, trace = request._correlation_id, request.trace()._key
    fields: list[Any] = [
        speakable(request.model_name),
        int(request.model_version),
        decoupled,
        speakable(request._request_id),
        speakable(sequence) if isinstance(sequence, str) else int(sequence),
        int(request._flags),
        int(request._timeout),
        request._parameters,
        sorted(map(speakable, request._outputs)),
        trace,
        trace or (None if batch is None else (batch, None)),
    ]
    if gpus:
        fields.append(gpus)
    return Parts(protocol.to_json([entries]), tensors, end), protocol.to_json(fields)


def response(content: bytes, region: Any) -> tuple[InferenceResponse | None, bool]:
    """Return the response of an INFERRED message, and whether it is the last one.

    The response is None if the message only marks the end.

    content   the message without its tensors
    region    the memory of the tensors, or a list of ready tensors if some of them are lent
    """
    _, size, _, flags = protocol.ANSWER.unpack_from(content)
    (answer,) = layout.answers(json.loads(content[protocol.ANSWER.size :]), size)
    final = bool(flags & protocol.FINAL)
    if not isinstance(answer, layout.Answer):
        return None, final
    if answer.error is not None:
        code, text = answer.error
        return InferenceResponse(error=TritonError(text, ErrorCode(code))), final
    found = InferenceResponse(
        region
        if type(region) is list
        else [received(p.name, p.number, p.shape, region, p.start, p.size) for p in answer.places]
    )
    found._parameters = answer.parameters
    return found, final


def _entries(
    tensors: Sequence[Tensor], found: list[Any], end: int, lends: Lends | None
) -> tuple[tuple[Entry, ...], int]:
    """Return the layout entries of tensors, and the new size of the region.

    Append their contents to `found`, whose size in the region so far is `end`.

    lends   lends tensors on GPUs, or returns None for those that are copied; None if all are copied
    """
    entries: list[Entry] = []
    for tensor in tensors:
        array = tensor._array
        if lends is not None and is_there(tensor) and (lent := lends(tensor)) is not None:
            entries.append(lent[0])
            found.append(lent[1])
            size = lent[0][3]
        elif array is None or tensor._number == BYTES:
            data = tensor._wire()
            size = len(data)
            entries.append((tensor._name, tensor._number, tensor._dims(), size))
            found.append(data)
        else:
            size = array.nbytes
            entries.append((tensor._name, tensor._number, array.shape, size))
            found.append(array)
        end += (size + _LAST) & -ALIGNMENT
    return tuple(entries), end


def is_there(tensor: Tensor) -> bool:
    """Return whether a tensor is on a GPU: it has neither an array nor bytes in host memory."""
    return tensor._array is None and tensor._buffer is None
