"""Methods whose extension this server does not have."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator

from core.errors import unsupported
from frontends.grpc.call import GrpcCall
from frontends.grpc.method import StreamFunction


def refusing_stream(text: str) -> StreamFunction:
    """A method that streams and answers UNIMPLEMENTED with `text`, whatever it is asked."""

    def refuse(requests: AsyncIterator[bytes], call: GrpcCall) -> AsyncGenerator[bytes, None]:
        raise unsupported(text)

    return refuse
