"""Server: one server behind the router, its connections and its state.

Address ─► [Server] ─► connections, models
"""

from __future__ import annotations

import asyncio
import enum
import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

from core_router.servers.server_model import ServerModel

if TYPE_CHECKING:
    from core_router.grpc.pool import LinkPool
    from core_router.http.upstream import ServerConnection

logger = logging.getLogger("core_router")


@dataclass(frozen=True, order=True)
class TlsPorts:
    """Which ports of a server use TLS.

    name   that its certificate must have; "" for its host
    """

    http: bool = False
    grpc: bool = False
    metrics: bool = False
    name: str = ""


@dataclass(frozen=True, order=True)
class Address:
    """Where a server listens.

    port, grpc_port   for HTTP, which names the server, and for gRPC
    metrics_port      for its metrics; 0 if it is not known
    """

    host: str
    port: int
    grpc_port: int = 8001
    metrics_port: int = 0
    tls: TlsPorts = TlsPorts()

    def __str__(self) -> str:
        return f"{self._host}:{self.port}"

    @property
    def url(self) -> str:
        """The start of URLs of its port for HTTP, without a path."""
        return f"{'https' if self.tls.http else 'http'}://{self}"

    @property
    def metrics_url(self) -> str:
        """The URL of its metrics."""
        scheme = "https" if self.tls.metrics else "http"
        return f"{scheme}://{self._host}:{self.metrics_port}/metrics"

    @property
    def _host(self) -> str:
        return f"[{self.host}]" if ":" in self.host else self.host


class State(enum.Enum):
    """What the last check of a server has found."""

    UNKNOWN = "not checked yet"
    READY = "ready"
    NOT_READY = "not ready"
    DOWN = "down"


class Server:
    """One server. Event loop only.

    address      where it is
    state        what the last check has found; `reason` says why if it is not READY
    downs        how often it was found down: what it knew of sequences before that is lost
    is_drained   an operator has taken it out: only sequences that it has begun reach it
    is_removed   its address is no longer in the list
    models       name → ServerModel, of the models in its index
    any_model    stands for requests without a model, and for models if the index is not known
    has_index    whether it has shown its index
    metrics      the text of its metrics as read last; b"" without any
    idle         open connections without a request, the last used one last
    busy         connections with a request
    in_flight    requests without a response
    links        the connections over gRPC; None before the first call
    """

    def __init__(self, address: Address):
        self.address = address
        self.name = str(address)
        self.state = State.UNKNOWN
        self.reason = ""
        self.downs = 0
        self.is_drained = False
        self.is_removed = False
        self.models: dict[str, ServerModel] = {}
        self.any_model = ServerModel(self, "")
        self.has_index = False
        self.metrics = b""
        self.idle: list[ServerConnection] = []
        self.busy: set[ServerConnection] = set()
        self.in_flight = 0
        self.links: LinkPool | None = None
        self.checks_now = asyncio.Event()  # set to have it checked at once

    def __repr__(self) -> str:
        return f"Server({self.name}, {self.state.value})"

    def set_state(self, state: State, reason: str = "") -> bool:
        """Set what was found. Return whether it is new; the log gets a line then."""
        if (state, reason) == (self.state, self.reason):
            return False
        before, self.state, self.reason = self.state, state, reason
        if before is not state:
            self.downs += state is State.DOWN
            because = f": {reason}" if reason else ""
            level = logging.INFO if state is State.READY else logging.WARNING
            logger.log(level, "server %s is %s%s", self.name, state.value, because)
        return True

    @property
    def takes_requests(self) -> bool:
        """Whether it is ready and not drained."""
        return self.state is State.READY and not self.is_drained

    @property
    def is_reachable(self) -> bool:
        """Whether requests of sequences that it has begun still reach it."""
        return self.state in (State.READY, State.NOT_READY)

    @property
    def status(self) -> str:
        """The state in words, with its reason."""
        text = f"{self.state.value} ({self.reason})" if self.reason else self.state.value
        return f"{text}, drained" if self.is_drained else text

    def move_requests(self) -> None:
        """Have other servers answer what may be repeated: this one no longer answers."""
        for connection in list(self.busy):
            if connection.request is not None:
                connection.request.move()
        if self.links is not None:
            self.links.move_calls()

    def close(self) -> None:
        """Close all connections; requests in flight are lost."""
        for connection in [*self.idle, *self.busy]:
            connection.close()
        self.idle.clear()
        if self.links is not None:
            self.links.close()

    def close_idle(self, before_s: float) -> None:
        """Close connections that were last used before that time of the monotonic clock."""
        old = [each for each in self.idle if each.used_s < before_s]
        for connection in old:
            self.idle.remove(connection)
            connection.close()
