"""What the connections of one port share: the server behind them. Loop thread only."""

import asyncio
from collections.abc import Callable
from typing import Protocol

from core.server import InferenceServer
from core.system.account import Share
from frontends.http.interceptors import HttpInterceptors
from frontends.http.native.fast_connection import FastConnection
from frontends.http.request_timeouts import UnfinishedRequest
from frontends.shared.access_log import AccessLog

class AiohttpFallback(Protocol):
    """The other engine, as a protocol on the transport of a connection.

    idle   it has answered every request whose head it has seen and waits for the next
    busy   it has a request without an answer
    used   time.monotonic() when its last request was over
    drops_followers   set when it gets a request behind whose body it drops what follows
    It closes the transport by itself, and pauses its reading only while it is not idle.
    """

    drops_followers: bool

    @property
    def idle(self) -> bool: ...
    @property
    def busy(self) -> bool: ...
    @property
    def used(self) -> float: ...
    def connection_made(self, transport: asyncio.BaseTransport) -> None: ...
    def unfinished(self) -> UnfinishedRequest | None: ...
    def give_up(self) -> None: ...
    def connection_lost(self, exc: BaseException | None) -> None: ...
    def data_received(self, data: bytes) -> None: ...
    def pause_writing(self) -> None: ...
    def resume_writing(self) -> None: ...

class ListenerContext:
    """What the connections of one port share.

    interceptors   asked before a connection takes a request; None where it may take any
    access_log     gets a line for every request; None for none
    fallback          makes the other engine's protocol for one connection, when it is first needed, with the
                   connection's share of the memory
    opened, lost   told of each connection when it begins and ends
    keep_alive_s   how long a connection is kept on which nothing is answered
    """

    def __init__(
        self,
        server: InferenceServer,
        loop: asyncio.AbstractEventLoop,
        *,
        fallback: Callable[[Share], AiohttpFallback],
        opened: Callable[[FastConnection, asyncio.Transport], None],
        lost: Callable[[FastConnection], None],
        keep_alive_s: float,
        interceptors: HttpInterceptors | None = None,
        access_log: AccessLog | None = None,
    ) -> None: ...
