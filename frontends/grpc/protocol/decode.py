"""Decode bytes into a message, with an error for the client if they are invalid.

Parts are counted before protobuf creates objects: two bytes can become an object of a hundred bytes.
"""

from __future__ import annotations

from typing import TypeVar

from google.protobuf.message import DecodeError, Message

from core.errors import CoreError, invalid
from frontends.grpc.native.entries import MessageShape
from frontends.shared.v2 import MOST_ENTRIES

M = TypeVar("M", bound=Message)

MOST_PARTS = 100_000  # messages, map entries, texts and unknown fields, at all levels
# Elements of typed contents in a message that protobuf reads; native/infer_request.pyx reads any number.
MOST_ELEMENTS = 2**20

_ELEMENT_TYPES = ("inference.InferTensorContents",)
_shapes: dict[type[Message], MessageShape] = {}


def decode(message_class: type[M], data: bytes) -> M:
    """Return the message in `data`. Raises CoreError(INVALID) if it is no such message.

    Raises it also, before anything is decoded, for too many entries, parts, or elements of typed contents.
    """
    shape = _shapes.get(message_class)
    if shape is None:
        shape = _shapes[message_class] = MessageShape(message_class.DESCRIPTOR, _ELEMENT_TYPES)
    try:
        excess = shape.excess(data, MOST_ENTRIES, MOST_PARTS, MOST_ELEMENTS)
        if excess is None:
            return message_class.FromString(data)
    except (DecodeError, ValueError):
        raise invalid(
            f"the request of {len(data)} bytes is no {message_class.DESCRIPTOR.full_name}"
        ) from None
    raise _too_many(*excess)


def _too_many(what: str, most: int) -> CoreError:
    found = f"the request has more than {most} {what}; {most} are the most"
    if what == "elements":
        found += " in typed contents of such a request: send them in raw_input_contents"
    return invalid(found)
