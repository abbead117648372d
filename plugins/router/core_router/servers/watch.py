"""Watch: checks one server again and again, and reads which models it has.

Server ─► [Watch] ─► readiness, index, configurations ─► state, models ─► ServerTable
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping
from time import time
from typing import Any, NamedTuple
from urllib.parse import quote

import aiohttp
import orjson

from core_router.servers.left_models import LeftModels
from core_router.servers.server import Server, State
from core_router.servers.server_model import ServerModel
from core_router.servers.table import ServerTable
from core_router.servers.tls import reason_of

logger = logging.getLogger("core_router")

_LEAST_S = 0.05  # between two checks in the mean, however many requests fail or changes come
_LEAST_ANNOUNCED_S = 0.01  # before one check of a change; the next pause is longer by the rest
_MOST_ANNOUNCED = 16  # configurations in one check of models that have changed
_MOST_READ_AGAIN = 4  # those of each other sort: a reload may have changed them


class _Kind(NamedTuple):
    """What a configuration says of the requests of a model."""

    is_stateful: bool
    is_decoupled: bool


_PLAIN = _Kind(False, False)


class Watch:
    """The checks of one server. Event loop only.

    session      sends them
    interval_s   seconds between two checks
    timeout_s    seconds after which a check has failed
    failures     failed checks in a row after which a server is down that refuses no connection
    arguments    of each check: headers such as a token, and those of TLS
    left         gets the models that the server no longer has
    announces    whether the server announces changes, see Announcements
    since_s      when the server got the state that it has, or was drained or resumed, in seconds since 1970
    """

    def __init__(
        self,
        server: Server,
        table: ServerTable,
        session: aiohttp.ClientSession,
        interval_s: float,
        timeout_s: float,
        failures: int,
        arguments: Mapping[str, Any],
        left: LeftModels,
    ):
        self.server = server
        self._table = table
        self._session = session
        self._interval_s = interval_s
        self._timeout = aiohttp.ClientTimeout(total=timeout_s)
        self._most_failures = failures
        self._arguments = arguments
        self._left = left
        self.announces = False
        self.since_s = time()
        self._announced: dict[str, None] = {}  # models that have changed, the first ones first
        self._hears = asyncio.Event()  # set by an announcement that no check has followed
        self._failures = 0
        self._index = b""
        self._kinds: dict[str, _Kind] = {}  # of models that were ready, the oldest first
        # Those that were not readable as a whole, the oldest first.
        self._unread: dict[str, None] = {}
        self._begun = self._ended = 0  # numbers of the checks
        self._has_ended = asyncio.Condition()

    async def run(self) -> None:
        """Check until cancelled."""
        now, clock = self.server.checks_now, asyncio.get_running_loop().time
        owed_s = 0.0  # the pause that the checks until now have left to do
        while True:
            now.clear()
            self._hears.clear()
            self._begun += 1
            try:
                await self._check()
            except Exception:  # a defect must not end the checks of a server
                logger.exception("the check of server %s failed", self.server.name)
            self._ended = self._begun
            async with self._has_ended:
                self._has_ended.notify_all()
            owed_s, ended_s, most_s = owed_s + _LEAST_S, clock(), _LEAST_S - _LEAST_ANNOUNCED_S
            await asyncio.sleep(owed_s - most_s)
            await _set_within(self._hears, most_s)  # what is left then is added to the next pause
            await _set_within(now, self._interval_s)
            owed_s = max(0.0, owed_s - (clock() - ended_s))

    async def look(self) -> None:
        """Wait for the end of a check that begins after this call."""
        wanted = self._begun + 1
        self.server.checks_now.set()
        async with self._has_ended:
            await self._has_ended.wait_for(lambda: self._ended >= wanted)

    def announced(self, models: Iterable[str]) -> None:
        """Check at once: the server says that it has changed, and these models if it names them."""
        self._announced.update(dict.fromkeys(models))
        self._hears.set()
        self.server.checks_now.set()

    # one check ------------------------------------------------------------

    async def _check(self) -> None:
        try:
            status, _ = await self._ask("GET", "/v2/health/ready")
            await self._read_index()
        except aiohttp.ClientConnectorError as error:
            self._failed(reason_of(error), self._most_failures)
        except asyncio.TimeoutError:  # which is an OSError since Python 3.11
            self._failed(f"no answer in {self._timeout.total:g} s", 1)
        except (aiohttp.ClientError, OSError) as error:
            self._failed(reason_of(error), 1)
        else:
            self._failures = 0
            is_ready = status == 200
            self._set(
                State.READY if is_ready else State.NOT_READY,
                "" if is_ready else f"its readiness has status {status}",
            )

    def _failed(self, reason: str, weight: int) -> None:
        """Count a failed check; a refused connection counts as many."""
        self._failures += weight
        if self._failures < self._most_failures and self.server.state is not State.UNKNOWN:
            self.server.checks_now.set()
            return
        self._index = b""  # a server that comes back may have other models
        self._kinds.clear()
        self._unread.clear()
        self._announced.clear()
        if self._set(State.DOWN, reason):
            self.server.move_requests()

    def _set(self, state: State, reason: str) -> bool:
        before = self.server.state
        is_new = self.server.set_state(state, reason)
        if state is not before:
            self.since_s = time()
        if is_new:
            self._table.changed()
        return is_new

    async def _read_index(self) -> None:
        """Read the index, and the configurations of models that it has not had before."""
        server = self.server
        status, data = await self._ask("POST", "/v2/repository/index")
        if status != 200:
            # A server without an index, or without one for this caller: any model may be there.
            if server.has_index:
                server.has_index = False
                self._table.changed()
            self._announced.clear()  # names of an index that is not read
            return
        if data == self._index:
            await self._read_again()
        else:
            await self._read_new(data)
        if self._announced:
            server.checks_now.set()  # the next check reads more of them

    async def _read_new(self, data: bytes) -> None:
        """Read an index, and the configurations of new models and of some that have changed."""
        entries = orjson.loads(data)
        versions: dict[str, set[str]] = {}
        for each in entries:
            found = versions.setdefault(each["name"], set())
            if each.get("state") == "READY":
                found.add(str(each.get("version", "")))
        new = [name for name, ready in versions.items() if ready and name not in self._kinds]
        for name in dict.fromkeys([*new, *[*self._announced][:_MOST_ANNOUNCED]]):
            self._announced.pop(name, None)  # before the read: it may change again meanwhile
            if versions.get(name):
                self._unread[name] = None  # until it is read: the server may fail now
                await self._read_kind(name)
        self._take(versions)
        self._index = data

    def _take(self, versions: Mapping[str, set[str]]) -> None:
        """Make the models of the server those of its index."""
        server = self.server
        for name in server.models.keys() - versions.keys():
            self._left.keep(server.models.pop(name))
            self._kinds.pop(name, None)
            self._unread.pop(name, None)
        for name, ready in versions.items():
            found = server.models.get(name)
            if found is None:
                found = server.models[name] = ServerModel(server, name)
                self._left.go_on(found)
                found.expect(_mean_latency_s(self._table, name))
            found.versions = frozenset(ready)
            found.is_stateful, found.is_decoupled = self._kinds.get(name, _PLAIN)
        server.has_index = True
        self._table.changed()

    async def _read_again(self) -> None:
        """Read a few configurations: some of changed models, some that were not readable, the oldest ones."""
        models, most = self.server.models, _MOST_READ_AGAIN
        names = [
            *[*self._announced][:_MOST_ANNOUNCED],
            *[*self._unread][:most],
            *[*self._kinds][:most],
        ]
        for name in dict.fromkeys(names):
            self._announced.pop(name, None)  # before the read: it may change again meanwhile
            found = models.get(name)
            if found is None or not found.versions:
                self._kinds.pop(name, None)  # read when the model is ready
                self._unread.pop(name, None)
                continue
            try:
                await self._read_kind(name)
            except (aiohttp.ClientError, OSError, asyncio.TimeoutError):
                # One model must not make the server down. The others come first in the next check.
                self._kinds[name] = self._kinds.pop(name, _PLAIN)
                self._unread.pop(name, None)
                self._unread[name] = None
                return
            kind = self._kinds[name]
            if kind != (found.is_stateful, found.is_decoupled):
                found.is_stateful, found.is_decoupled = kind
                self._table.changed()

    async def _read_kind(self, name: str) -> None:
        """Read what a model and its steps are. What was known stays if a configuration is not readable."""
        kind, is_whole = await self._kind_of(name)
        before = self._kinds.pop(name, kind)
        self._kinds[name] = kind if is_whole else before
        self._unread.pop(name, None)
        if not is_whole:
            self._unread[name] = None

    async def _kind_of(self, name: str) -> tuple[_Kind, bool]:
        """Return what the readable configurations say, and whether these are all."""
        kind, seen, left, is_whole = _PLAIN, {name}, [name], True
        while left:
            path = f"/v2/models/{quote(left.pop(), safe='')}/config"
            status, data = await self._ask("GET", path)
            config = _json(data) if status == 200 else None
            if not isinstance(config, dict):
                is_whole = False
                continue
            policy = config.get("model_transaction_policy")
            is_decoupled = isinstance(policy, dict) and bool(policy.get("decoupled"))
            kind = _Kind(
                kind.is_stateful or "sequence_batching" in config, kind.is_decoupled or is_decoupled
            )
            steps = set(_steps_of(config)) - seen
            seen |= steps
            left += steps
        return kind, is_whole

    async def _ask(self, method: str, path: str) -> tuple[int, bytes]:
        """Return status and body of a response. Raises aiohttp.ClientError, OSError or TimeoutError."""
        url = f"{self.server.address.url}{path}"
        async with self._session.request(
            method,
            url,
            timeout=self._timeout,
            allow_redirects=False,
            **self._arguments,
        ) as response:
            return response.status, await response.read()


async def _set_within(event: asyncio.Event, most_s: float) -> None:
    """Wait until an event is set; set it after a time."""
    # Not wait_for: before Python 3.12 it loses a cancellation that comes together with the event.
    timer = asyncio.get_running_loop().call_later(most_s, event.set)
    try:
        await event.wait()
    finally:
        timer.cancel()


def _json(data: bytes) -> Any:
    """Return what the JSON says; None for other bytes."""
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        return None


def _steps_of(config: Mapping[str, Any]) -> list[str]:
    """Return the models of an ensemble; none for other models."""
    ensemble = config.get("ensemble_scheduling")
    steps = ensemble.get("step") if isinstance(ensemble, dict) else None
    found = [each.get("model_name") for each in steps or () if isinstance(each, dict)]
    return [each for each in found if isinstance(each, str)]


def _mean_latency_s(table: ServerTable, name: str) -> float:
    """Return the mean duration of a model on the servers that have answered for it; 0 if none has."""
    known: list[Any] = [
        each.models[name].latency_s for each in table.servers.values() if name in each.models
    ]
    known = [each for each in known if each]
    return sum(known) / len(known) if known else 0.0
