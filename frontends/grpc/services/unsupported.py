"""Methods whose extension this server does not have."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator

from core.errors import unsupported
from frontends.grpc.call import Call
from frontends.grpc.method import StreamFunction


def refusing_stream(text: str) -> StreamFunction:
    """A method that streams and answers UNIMPLEMENTED with `text`, whatever it is asked."""

    def refuse(requests: AsyncIterator[bytes], call: Call) -> AsyncGenerator[bytes, None]:
        raise unsupported(text)

    return refuse
