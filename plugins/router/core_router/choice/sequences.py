"""Sequences: which server has the state of which sequence.

start ─► [Sequences.begin] ─► find ─► … ─► end, or too long without a request

The first choice depends on the identifier only. So several routers, and one that was started again, agree on
it while the servers stay the same.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from core_router.servers.server_model import ServerModel
    from core_router.servers.table import Route

IDLE_S = 600.0
"""Seconds after which a sequence without a request is forgotten. Servers forget sooner."""

Identifier = int | str


class SequenceParameters(NamedTuple):
    """The sequence of a request.

    identifier   a number or text, neither 0 nor ""
    """

    identifier: int | str
    is_start: bool
    is_end: bool


class Pin:
    """A sequence and its server.

    used_s   time of its last request, of the monotonic clock
    """

    __slots__ = ("_downs", "server_model", "used_s")

    def __init__(self, server_model: ServerModel, used_s: float):
        self.server_model = server_model
        self.used_s = used_s
        self._downs = server_model.server.downs

    @property
    def is_open(self) -> bool:
        """Whether the server knows the sequence: it has not been down since."""
        return self._downs == self.server_model.server.downs


class Sequences:
    """The sequences that are open, by model and identifier. Event loop only."""

    def __init__(self) -> None:
        self._pins: dict[tuple[str, Identifier], Pin] = {}

    def __len__(self) -> int:
        return sum(pin.is_open for pin in self._pins.values())

    def find(self, model: str, identifier: Identifier, now_s: float) -> ServerModel | None:
        """Return the server of a sequence; None for one that did not begin here."""
        pin = self._pins.get((model, identifier))
        if pin is None:
            return None
        pin.used_s = now_s
        return pin.server_model

    def begin(
        self, model: str, identifier: Identifier, server_model: ServerModel, now_s: float
    ) -> None:
        """Pin a sequence to a server, in place of the server that it had."""
        self._pins[model, identifier] = Pin(server_model, now_s)

    def choose(
        self,
        route: Route,
        sequence: SequenceParameters,
        tried: Collection[ServerModel],
        now_s: float,
    ) -> ServerModel | None:
        """Return the server for a request of a sequence, whose first request defines it.

        None if that server is gone, or if a first request has tried all of them.
        """
        name, identifier = route.target.model, sequence.identifier
        pinned = self.find(name, identifier, now_s)
        if not sequence.is_start and pinned is not None:
            goes_on = pinned not in tried and pinned.server.is_reachable
            return pinned if goes_on and self._pins[name, identifier].is_open else None
        candidates = route.candidates
        if route.split is not None:
            candidates = route.split.draw(_fraction(name, identifier), tried, now_s)
        found = first_choice(identifier, candidates, tried, now_s)
        if found is not None:
            self.begin(name, identifier, found, now_s)
        return found

    def failure(self, route: Route, sequence: SequenceParameters) -> str:
        """Return why a sequence cannot go on; "" if another reason ended the request."""
        pin = self._pins.get((route.target.model, sequence.identifier))
        if sequence.is_start or pin is None:
            return ""
        server = pin.server_model.server
        status = f"is {server.status}" if pin.is_open else "has ended since"
        return (
            f"sequence {sequence.identifier} was on server {server.name}, which {status}: "
            "begin the sequence again"
        )

    def end(self, model: str, identifier: Identifier) -> None:
        """Forget a sequence."""
        self._pins.pop((model, identifier), None)

    def expire(self, before_s: float) -> None:
        """Forget sequences without a request since that time of the monotonic clock."""
        old = [key for key, pin in self._pins.items() if pin.used_s < before_s]
        for key in old:
            del self._pins[key]

    def count_of(self, server: object) -> int:
        """Return the number of open sequences of a server."""
        return sum(pin.server_model.server is server and pin.is_open for pin in self._pins.values())


def first_choice(
    identifier: Identifier,
    candidates: Sequence[ServerModel],
    tried: Collection[ServerModel],
    now_s: float,
) -> ServerModel | None:
    """Return the server for a new sequence by rendezvous hashing; None if all were tried.

    Of the servers that are not ejected, if there are any.
    """
    left = [each for each in candidates if each not in tried]
    left = [each for each in left if each.ejected_until <= now_s] or left
    return max(left, key=lambda each: _weight(identifier, each), default=None)


def _weight(identifier: Identifier, server_model: ServerModel) -> bytes:
    return _hash(identifier, server_model.name, server_model.server.name)


def _fraction(model: str, identifier: Identifier) -> float:
    """Return where a sequence falls among the shares, uniform in 0 to 1."""
    return int.from_bytes(_hash(identifier, model), "big") / 2**64


def _hash(identifier: Identifier, *names: str) -> bytes:
    text = "\0".join((str(identifier), *names))
    return hashlib.blake2b(text.encode(), digest_size=8).digest()
