"""StreamChoice: where the requests of one stream go.

StreamRequest ─► [StreamChoice.choose] ─► ServerModel
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from time import monotonic
from typing import TYPE_CHECKING

from core_router.choice.choose import choose_on

if TYPE_CHECKING:
    from core_router.grpc.server_stream import StreamRequest
    from core_router.router import Router
    from core_router.servers.server import Server
    from core_router.servers.server_model import ServerModel


MOST_NAMES = 128 * 1024  # characters of the names of models in one stream, which keeps them
_ADDED = 64  # characters that each name counts in addition to its own
TOO_MANY_MODELS = (
    f"the models of this stream have names of more than {MOST_NAMES} characters, with {_ADDED} for each; "
    "open another stream for further models"
)


class StreamChoice:
    """Keeps the requests for a model on one server, those of a sequence on its own. Event loop only."""

    def __init__(self, router: Router) -> None:
        self._router = router
        self._models: dict[str, ServerModel] = {}  # where the requests of each model go
        self._names: set[str] = set()
        self._size = 0

    def remembers(self, model: str) -> bool:
        """Remember the name of a model of the stream. Return False if there is no room for it."""
        if model not in self._names:
            self._size += len(model) + _ADDED
            if self._size > MOST_NAMES:
                return False
            self._names.add(model)
        return True

    def choose(self, request: StreamRequest, servers: Container[Server]) -> ServerModel | None:
        """Return where a request goes; None if no server takes it.

        servers   those that the stream has reached; they come first
        """
        route, tried, now_s = request.route, request.tried, monotonic()
        if request.sequence is not None:
            found = self._router.sequences.choose(route, request.sequence, tried, now_s)
            if request.sequence.is_end:
                self._router.sequences.end(route.target.model, request.sequence.identifier)
            return found
        name = route.target.model
        pinned = self._models.get(name)
        if pinned is not None and pinned not in tried and _takes_more(pinned, route.candidates):
            return pinned
        here = [
            each
            for each in route.candidates
            if each.server in servers and each not in tried and _takes_more(each, route.candidates)
        ]
        if here and route.split is None:
            chosen: ServerModel | None = here[0]
        else:
            chosen = choose_on(route, tried, now_s)
        if chosen is not None:
            self._models[name] = chosen
        return chosen

    def moves(self, request: StreamRequest) -> bool:
        """Return whether another server may get a request, and take that from the budget of retries."""
        sequence = request.sequence
        return (
            bool(request.message)
            and (sequence is None or sequence.is_start)
            and any(each not in request.tried for each in request.route.candidates)
            and len(request.tried) <= self._router.limits.retries
            and self._router.budget.take()
        )

    def lost(self, requests: Iterable[StreamRequest]) -> None:
        """Forget the sequences whose starts have no good response."""
        for each in requests:
            if each.sequence is not None:
                self._router.sequences.lost(each.model, each.sequence)

    def failure(self, request: StreamRequest) -> str:
        """Return why no server takes a request, and forget a sequence that cannot go on."""
        why = ""
        if request.sequence is not None:
            why = self._router.sequences.failure(request.route, request.sequence)
        why = why or self._router.table.status()
        return f"no server takes a request for model '{request.model}'; {why}"

    def forget(self, server: Server) -> None:
        """Keep no model on a server."""
        self._models = {
            name: each for name, each in self._models.items() if each.server is not server
        }


def _takes_more(each: ServerModel, candidates: tuple[ServerModel, ...]) -> bool:
    return each in candidates and each.server.takes_requests
