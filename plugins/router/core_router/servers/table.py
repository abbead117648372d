"""ServerTable: which servers can answer a request.

Watch ─► changed ─► [ServerTable] ─► Candidates ─► choice
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from core_router.choice.shares import Shares
from core_router.http.targets import target_of
from core_router.servers.server import Server, State
from core_router.servers.server_model import ServerModel
from core_router.targets import Purpose, Target

if TYPE_CHECKING:
    from core_router.choice.shares import Split

_MOST_ROUTES = 4096  # kept; a client that asks for other paths each time costs their parsing
# Longer ones are routed, but not kept: names of models are names of folders, at most 255 bytes.
_LONGEST_NAME = 255 + 32  # characters of a model and a version
_LONGEST_TARGET = 1024  # bytes of a method and a target, in which a byte of a name may take three


class Route:
    """What a request asks for, and the servers that can answer. Never changes; a new table has new routes.

    candidates    of these, one gets the request
    split         how they divide the requests; None if their wait alone decides
    is_known      whether a server has the model in its index, or the request needs none
    is_stateful   whether the model has sequences
    is_decoupled  whether the model may answer a request any number of times
    is_plain      whether the request is forwarded without a look at its body
    is_inference  whether two servers may execute the request, unless it belongs to a sequence
    """

    def __init__(
        self,
        target: Target,
        candidates: tuple[ServerModel, ...],
        is_known: bool,
        repeats: bool,
        split: Split | None = None,
    ):
        self.target = target
        self.purpose = target.purpose
        self.candidates = candidates
        self.split = split
        self.is_known = is_known
        self.is_stateful = any(each.is_stateful for each in candidates)
        self.is_decoupled = any(each.is_decoupled for each in candidates)
        self.is_inference = repeats
        forwarded = (Purpose.MODEL, Purpose.INFERENCE, Purpose.ANY)
        self.is_plain = is_known and not self.is_stateful and target.purpose in forwarded

    @property
    def runs_twice(self) -> bool:
        """Whether two servers may execute the request: indexes have the model, and it has no sequences."""
        # Models of a server without an index have no name.
        is_indexed = self.is_known and all([each.name for each in self.candidates])
        return self.is_inference and is_indexed and not self.is_stateful

    @property
    def has_copies(self) -> bool:
        """Whether a slow request may get a second copy, which must not change shares."""
        return self.split is None and not self.is_decoupled and self.runs_twice


class ServerTable:
    """All servers, and the routes to them. Event loop only.

    shares   of the servers in the requests; call `changed` after a new value
    """

    def __init__(self) -> None:
        self.servers: dict[str, Server] = {}
        self.shares = Shares()
        self._routes: dict[tuple[object, ...], Route] = {}

    def changed(self) -> None:
        """Forget the routes. Call it after each change of a server that `find` reads."""
        self._routes.clear()

    def find(self, method: bytes, target: bytes) -> Route:
        """Return the route of a request: the same object until the table changes, if the target is not long.

        target   path and query, as received
        """
        route = self._routes.get((method, target))
        if route is None:
            route = self.route(target_of(method, target.partition(b"?")[0]))
            if len(method) + len(target) <= _LONGEST_TARGET:
                self._keep((method, target), route)
        return route

    def for_model(self, purpose: Purpose, model: str, version: str) -> Route:
        """Return the route of a request that names a model, as `find` does.

        model, version   "" for none
        """
        key = (purpose, model, version)
        route = self._routes.get(key)
        if route is None:
            route = self.route(Target(purpose, model, version))
            if len(model) + len(version) <= _LONGEST_NAME:
                self._keep(key, route)
        return route

    def _keep(self, key: tuple[object, ...], route: Route) -> None:
        if len(self._routes) >= _MOST_ROUTES:
            self._routes.clear()
        self._routes[key] = route

    def route(self, target: Target) -> Route:
        """Return the route of a target."""
        repeats = target.purpose in (Purpose.INFERENCE, Purpose.NAMED_IN_BODY)
        if not target.model:
            return Route(target, self._any(), True, repeats)
        there = self._there()
        ready = [each for each in there if each.state is State.READY]
        for has in (_has_version, _has_model):
            for servers in (ready, there):
                found = tuple(
                    each
                    for server in servers
                    if (each := server.models.get(target.model)) is not None
                    and has(each, target.version)
                )
                if found:
                    split = self.shares.split(target.model, found)
                    return Route(target, found, True, repeats, split)
        without = [each for each in ready or there if not each.has_index]
        if without:
            unknown = tuple(each.any_model for each in without)
            split = self.shares.split(target.model, unknown)
            return Route(target, unknown, True, repeats, split)
        # Any server says best what is wrong with the name.
        return Route(target, self._any(), False, repeats)

    def in_use(self) -> list[Server]:
        """Return the servers that are neither down nor removed, for what all of them must do."""
        return [
            each
            for each in self.servers.values()
            if each.state in (State.READY, State.NOT_READY) and not each.is_removed
        ]

    def status(self) -> str:
        """Return the servers with their states, for an error."""
        found = ", ".join(f"{each.name}: {each.status}" for each in self.servers.values())
        return found or "no server is in the list"

    def is_ready(self) -> bool:
        """Return whether a server is ready and not drained."""
        return any(each.takes_requests for each in self.servers.values())

    def _any(self) -> tuple[ServerModel, ...]:
        there = self._there()
        ready = [each for each in there if each.state is State.READY]
        return tuple(each.any_model for each in ready or there)

    def _there(self) -> list[Server]:
        """Return the servers for new requests, also those that are not ready: better than none."""
        return [each for each in self.in_use() if not each.is_drained]


def _has_version(each: ServerModel, version: str) -> bool:
    return version in each.versions if version else bool(each.versions)


def _has_model(each: ServerModel, version: str) -> bool:
    return True
