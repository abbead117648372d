"""Methods whose extension this server does not have."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator

from core.errors import unsupported
from frontends.grpc.call import Call
from frontends.grpc.method import StreamFunction, UnaryFunction


def refusing(text: str) -> UnaryFunction:
    """A method that answers UNIMPLEMENTED with `text`, whatever it is asked."""

    async def refuse(data: bytes, call: Call) -> bytes:
        raise unsupported(text)

    return refuse


def refusing_stream(text: str) -> StreamFunction:
    """The same for a method that streams."""

    def refuse(requests: AsyncIterator[bytes], call: Call) -> AsyncGenerator[bytes, None]:
        raise unsupported(text)

    return refuse
