"""ListenerContext: the state that all connections of one port share. Loop thread only."""

import asyncio
from collections.abc import Callable
from typing import Protocol

from core.server import InferenceServer
from core.system.account import Share
from frontends.http.interceptors import HttpInterceptors
from frontends.http.native.fast_connection import FastConnection
from frontends.http.request_timeouts import UnfinishedRequest
from frontends.shared.access_log import AccessLog
from frontends.shared.call_observers import CallObservers

class AiohttpFallback(Protocol):
    """What a FastConnection needs of aiohttp's protocol, which serves a part of the connection's requests.

    idle   whether it has answered every request whose head it has received
    busy   whether it has a request without a response
    used   time.monotonic() at the end of its last request
    drops_followers   set to True before a request after which aiohttp may drop further bytes
    unfinished        returns the incomplete request that it waits for; None if there is none
    give_up           closes the connection of a client that is too slow
    It closes the transport by itself, and pauses reading only while it is not idle.
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
    """The server, the limits and the callbacks that all connections of one port share.

    interceptors   authorize each request of the fast path; None to authorize all
    access_log     gets a line for every request; None: requests are not logged
    fallback       returns aiohttp's protocol for one connection, and gets the connection's share of the
                   memory account; called when the connection first needs it
    opened, lost   called at the beginning and the end of each connection
    keep_alive_s   seconds after which an idle connection is closed
    leaves_origins   whether aiohttp serves requests with an Origin header, since it writes the fields of CORS
    observers      asked for each request of the fast path; None for none
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
        leaves_origins: bool = False,
        observers: CallObservers | None = None,
    ) -> None: ...
