"""The fast path of a connection: complete, regular requests for inference, straight from their bytes.

Loop thread only.
"""

import asyncio

from frontends.http.native.connection_lifetime import ConnectionLifetime

class FastConnection(ConnectionLifetime, asyncio.Protocol):
    """One connection, between its transport, the server and a fallback.

    A request for inference whose head is in the common form (head.hpp) is given to its model as soon
    as it is complete; requests behind it go on before it is answered, at most 64 of them. Answers
    leave in the order of the requests, with the bytes of the other engine.

    Every other byte is aiohttp's, unchanged. It gets them when all requests before them are
    answered, and keeps the connection until it has answered and the next byte begins a request.

    Reading is paused while too many requests run, while bytes wait for aiohttp's turn and
    while the client does not read; answers wait meanwhile.
    """
