"""Sequences: which server has the state of which sequence.

start ─► [Sequences.begin] ─► find ─► … ─► end, or too long without a request

The first choice depends on the identifier only. So several routers, and one that was started again, agree on
it while the servers stay the same.

A request that names a sequence stays on its server whatever the model's configuration says: a model may keep
state of its own, and a server may hide its configurations.
"""

from __future__ import annotations

import hashlib
from collections import Counter, OrderedDict
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, NamedTuple

from core_router.servers.server import Server, State

if TYPE_CHECKING:
    from core_router.servers.server_model import ServerModel
    from core_router.servers.table import Route

IDLE_S = 600.0
"""Seconds after which a sequence without a request is forgotten. Servers forget sooner."""

_MOST = 262_144
"""Sequences for models with `sequence_batching` that are kept: clients may never end them."""

_MOST_UNDECLARED = 16_384
"""The same for other models."""

_MOST_FORGOTTEN = 1000
"""Old sequences that a tick of the router's clock forgets; others wait for a request or for the next one."""

_LONGEST_TEXT = 64
"""Characters of a name or identifier that are kept; longer ones have a hash in their place."""

_LONGEST_TITLE = 256
"""Characters of an identifier in an error."""

Identifier = int | str

_Key = tuple[str | bytes, Identifier | bytes]
_Pins = OrderedDict[_Key, "Pin"]


class SequenceParameters(NamedTuple):
    """The sequence of a request.

    identifier   a number or text, neither 0 nor ""
    """

    identifier: int | str
    is_start: bool
    is_end: bool


class Pin:
    """A sequence and its server.

    downs    how often the server had been down when the sequence began
    used_s   time of its last request, of the monotonic clock
    stays    whether only a start moves it; else one request fails after the end of the server, and the next
             begins anew
    """

    __slots__ = ("downs", "server_model", "stays", "used_s")

    def __init__(self, server_model: ServerModel, used_s: float, stays: bool = True):
        self.server_model = server_model
        self.used_s = used_s
        self.stays = stays
        self.downs = server_model.server.downs

    @property
    def is_open(self) -> bool:
        """Whether the server knows the sequence: it has not been down since."""
        return self.downs == self.server_model.server.downs


class Sequences:
    """The sequences that are open, by model and identifier. Event loop only.

    Their number has a bound. A sequence that was forgotten goes on where the hash of its identifier leads: to
    its server, while the list of servers stays the same.
    """

    def __init__(self) -> None:
        # The least recently used first.
        self._pins: _Pins = OrderedDict()
        self._undeclared: _Pins = OrderedDict()
        # Those of each server, by `downs`: only those of its last value are open.
        self._counts: dict[Server, Counter[int]] = {}

    def __len__(self) -> int:
        return sum(counts[server.downs] for server, counts in self._counts.items())

    def find(self, model: str, identifier: Identifier, now_s: float) -> ServerModel | None:
        """Return the server of a sequence; None for one that did not begin here."""
        pin = self._pin(_key(model, identifier))
        if pin is None:
            return None
        pin.used_s = now_s
        return pin.server_model

    def begin(
        self, model: str, identifier: Identifier, server_model: ServerModel, now_s: float
    ) -> None:
        """Pin a sequence of a model that declares sequences, in place of the server that it had."""
        self._keep(self._pins, _MOST, _key(model, identifier), Pin(server_model, now_s))

    def _keep(self, pins: _Pins, most: int, key: _Key, pin: Pin) -> None:
        self._forget(key)
        # Two for each that comes, so that old ones leave also if thousands come in a second.
        self._expire(pins, pin.used_s - IDLE_S, 2)
        if len(pins) >= most:
            self._uncount(pins.popitem(last=False)[1])
        pins[key] = pin
        server = pin.server_model.server
        self._counts.setdefault(server, Counter())[pin.downs] += 1

    def _uncount(self, pin: Pin) -> None:
        server = pin.server_model.server
        counts = self._counts[server]
        counts[pin.downs] -= 1
        if not counts[pin.downs]:
            del counts[pin.downs]
            if not counts:
                del self._counts[server]

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
        key = _key(name, identifier)
        pin = self._pin(key)
        if not sequence.is_start and pin is not None:
            pin.used_s, pinned = now_s, pin.server_model
            goes_on = pinned not in tried and pinned.server.is_reachable and pin.is_open
            return pinned if goes_on and (pin.stays or _takes(pinned.server, route)) else None
        candidates = route.candidates
        if route.split is not None:
            candidates = route.split.draw(_fraction(name, identifier), tried, now_s)
        found = first_choice(identifier, candidates, tried, now_s)
        if found is not None and route.is_stateful:
            self.begin(name, identifier, found, now_s)
        elif found is not None and route.is_known:  # else no server has a state
            pin = Pin(found, now_s, sequence.is_start)
            self._keep(self._undeclared, _MOST_UNDECLARED, key, pin)
        return found

    def failure(self, route: Route, sequence: SequenceParameters) -> str:
        """Return why a sequence cannot go on; "" if another reason ended the request.

        Forget it if its start has failed, and if a client that has never begun it may go on elsewhere, now
        that it knows.
        """
        key = _key(route.target.model, sequence.identifier)
        # Its place says when it was used last.
        pin = self._pins.get(key) or self._undeclared.get(key)
        if sequence.is_start or pin is None:
            self._forget(key)
            return ""
        if not pin.stays:
            self._forget(key)
        server = pin.server_model.server
        if not pin.is_open:
            status = "has ended since"
        elif server.state is State.READY:
            status = "is no longer in the list" if server.is_removed else "no longer takes it"
        else:
            status = f"is {server.status}"
        return (
            f"sequence {_title(sequence.identifier)} was on server {server.name}, which {status}: "
            "begin the sequence again"
        )

    def answered(self, model: str, sequence: SequenceParameters, is_good: bool) -> None:
        """Forget a sequence after the response to its last request, or to a start that has failed."""
        if sequence.is_end:
            self.end(model, sequence.identifier)
        elif not is_good:
            self.lost(model, sequence)

    def lost(self, model: str, sequence: SequenceParameters) -> None:
        """Forget a sequence whose start has no good response. Others may go on."""
        if sequence.is_start:
            self.end(model, sequence.identifier)

    def end(self, model: str, identifier: Identifier) -> None:
        """Forget a sequence."""
        self._forget(_key(model, identifier))

    def _forget(self, key: _Key) -> None:
        for pins in (self._pins, self._undeclared):
            pin = pins.pop(key, None)
            if pin is not None:
                self._uncount(pin)

    def expire(self, before_s: float) -> None:
        """Forget sequences without a request since that time of the monotonic clock; of many, some."""
        for pins in (self._pins, self._undeclared):
            self._expire(pins, before_s, _MOST_FORGOTTEN)

    def _expire(self, pins: _Pins, before_s: float, most: int) -> None:
        for _ in range(most):
            if not pins or next(iter(pins.values())).used_s >= before_s:
                return
            self._uncount(pins.popitem(last=False)[1])

    def by_server(self) -> Counter[str]:
        """Return the number of open sequences by the name of their server."""
        found: Counter[str] = Counter()
        for server, counts in self._counts.items():
            if counts[server.downs]:
                found[server.name] += counts[server.downs]
        return found

    def _pin(self, key: _Key) -> Pin | None:
        """Return the pin of a sequence, which is then the most recently used one."""
        for pins in (self._pins, self._undeclared):
            pin = pins.get(key)
            if pin is not None:
                pins.move_to_end(key)
                return pin
        return None


def _key(model: str, identifier: Identifier) -> _Key:
    return _short(model), identifier if isinstance(identifier, int) else _short(identifier)


def _short(text: str) -> str | bytes:
    """Return a text; a hash if it is long, because clients choose it and the router keeps it."""
    if len(text) <= _LONGEST_TEXT:
        return text
    return hashlib.blake2b(text.encode(), digest_size=16).digest()


def _title(identifier: Identifier) -> str:
    """Return an identifier for an error: the start of a long one."""
    text = str(identifier)
    return text if len(text) <= _LONGEST_TITLE else f"{text[:_LONGEST_TITLE]}…"


def _takes(server: Server, route: Route) -> bool:
    """Return whether a server goes on with its sequences. One that is drained does."""
    if server.is_drained and server.state is State.READY and not server.is_removed:
        return not server.has_index or route.target.model in server.models
    return any(each.server is server for each in route.candidates)


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
