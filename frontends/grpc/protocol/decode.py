"""Bytes → message, with the error that a client gets for bytes that are none."""

from __future__ import annotations

from typing import TypeVar

from google.protobuf.message import DecodeError, Message

from core.errors import invalid

M = TypeVar("M", bound=Message)


def decode(message_class: type[M], data: bytes) -> M:
    """The message that `data` holds. Raises CoreError(INVALID) if it holds none."""
    try:
        return message_class.FromString(data)
    except DecodeError:
        raise invalid(
            f"the request of {len(data)} bytes is no {message_class.DESCRIPTOR.full_name}"
        ) from None
