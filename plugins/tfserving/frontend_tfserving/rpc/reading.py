"""read: the bytes of a request for inference → its message, within a limit of parts and of memory.

Batches of examples have hundreds of thousands of parts. Those beyond FREE_PARTS are counted in the server's
account of memory before protobuf makes objects of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from google.protobuf.message import DecodeError

from core.errors import invalid
from frontends.grpc.call import GrpcCall
from frontends.grpc.native.entries import MessageShape
from frontends.grpc.protocol import decode
from frontends.http.background import LARGE_BYTES, begin, turn

FREE_PARTS = decode.MOST_PARTS
MOST_PARTS = 20_000_000
"""Of a request: most messages, map entries and texts, most entries of one field, most values of features."""

BYTES_PER_PART = 128
"""Of a part, while its request is read: at least what protobuf and Python need for it."""

_ELEMENTS = tuple(f"tensorflow.serving.{kind}List" for kind in ("Bytes", "Float", "Int64"))
_shapes: dict[Any, MessageShape] = {}

P = ParamSpec("P")
Result = TypeVar("Result")


async def read(message_class: Any, data: bytes, call: GrpcCall, known_as: Any = None) -> Any:
    """Return the message in `data`. Event loop only: large data is read on another thread.

    known_as   class with the same bytes and more of their fields, which are counted; errors name it
    Raises CoreError(INVALID) for bytes that are no such message and for more than MOST_PARTS, and
    MemoryExhausted.
    """
    known = known_as or message_class
    if (shape := _shapes.get(known)) is None:
        shape = _shapes[known] = MessageShape(known.DESCRIPTOR, _ELEMENTS)
    allowed = FREE_PARTS
    try:
        while excess := await away(len(data), shape.excess, data, allowed, allowed, allowed):
            if allowed == MOST_PARTS:
                raise invalid(f"the request has more than {allowed} {excess[0]}; send it in parts")
            more = min(allowed, MOST_PARTS - allowed)
            call.hold(more * BYTES_PER_PART, "the parts of a request")
            allowed += more
        return await away(len(data), message_class.FromString, data)
    except (DecodeError, ValueError):
        raise invalid(
            f"the request of {len(data)} bytes is no {known.DESCRIPTOR.full_name}"
        ) from None


async def away(size: int, work: Callable[P, Result], *args: P.args, **kwargs: P.kwargs) -> Result:
    """Return work(…), which is done on another thread for `size` bytes if these are many. Event loop only."""
    if size < LARGE_BYTES:
        return work(*args, **kwargs)
    async with turn():
        return await begin(work, *args, **kwargs)
