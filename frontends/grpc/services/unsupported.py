"""Methods of extensions that this server does not support."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator

from core.errors import unsupported
from frontends.grpc.call import GrpcCall
from frontends.grpc.method import StreamFunction


def refusing_stream(text: str) -> StreamFunction:
    """Return a streaming method that always answers UNIMPLEMENTED with `text`."""

    def refuse(requests: AsyncIterator[bytes], call: GrpcCall) -> AsyncGenerator[bytes, None]:
        raise unsupported(text)

    return refuse
