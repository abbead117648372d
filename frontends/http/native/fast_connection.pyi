"""The fast path of a connection: parses common requests for inference directly from their bytes.

Loop thread only.
"""

import asyncio

from frontends.http.native.connection_lifetime import ConnectionLifetime

class FastConnection(ConnectionLifetime, asyncio.Protocol):
    """One HTTP/1.1 connection: the protocol of its transport.

    A request for inference whose head has the common form (head.hpp) goes to its model as soon as it is
    complete; up to 64 requests of a connection run at a time. Responses leave in the order of the requests,
    with the bytes that the aiohttp path would send.

    aiohttp gets the bytes of all other requests unchanged, after the responses to all requests before them.
    The fast path continues when aiohttp has answered and the next byte begins a request.

    Reading is paused while too many requests run, while bytes wait for aiohttp, and while the client does not
    read its responses.
    """
