"""Combined: requests that all servers answer, and one answer made of theirs.

request ─► every server ─► [Combined] ─► index, list, statistics, or "done by all"
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import aiohttp
import orjson

from core_router.http.responses import error_body
from core_router.servers.tls import reason_of
from core_router.targets import Purpose, Target

if TYPE_CHECKING:
    from core_router.http.heads import RequestHead
    from core_router.servers.listing import ServerList
    from core_router.servers.server import Server
    from core_router.servers.table import ServerTable

_Json = Any


class _Answer(NamedTuple):
    """What one server has answered; status 502 and a text in `body` if it has not."""

    server: Server
    status: int
    body: bytes

    @property
    def is_good(self) -> bool:
        return self.status < 300

    def error(self) -> str:
        """Return the text of an error."""
        try:
            found = orjson.loads(self.body)
        except orjson.JSONDecodeError:
            found = None
        text = found.get("error") if isinstance(found, dict) else None
        return str(text) if text else f"status {self.status}"


class Combined:
    """Sends requests to all servers that are not down. Event loop only."""

    def __init__(self, table: ServerTable, servers: ServerList):
        self._table = table
        self._servers = servers

    async def answer(self, target: Target, head: RequestHead, body: bytes) -> tuple[int, bytes]:
        """Return status and body of the answer to a request of a client, with the client's headers."""
        servers = self._table.in_use()
        if target.purpose is Purpose.STATISTICS and target.model:
            servers = [each for each in servers if target.model in each.models] or servers
        if not servers:
            return 503, error_body("no server is up")
        answers = await asyncio.gather(*[self._ask(each, head, body) for each in servers])
        good = [each for each in answers if each.is_good]
        if target.purpose is Purpose.EVERY:
            # The client may use the model at once.
            await self._servers.look()
            return _of_all(answers)
        if not good:
            return answers[0].status, answers[0].body
        try:
            found = [(each.server, orjson.loads(each.body)) for each in good]
        except orjson.JSONDecodeError:
            return 502, error_body("a server's answer is not JSON")
        if target.purpose is Purpose.INDEX:
            return 200, orjson.dumps(merged_index(found))
        if target.purpose is Purpose.LIST:
            return 200, orjson.dumps(merged_list(value for _, value in found))
        return 200, orjson.dumps(merged_statistics(value for _, value in found))

    async def _ask(self, server: Server, head: RequestHead, body: bytes) -> _Answer:
        try:
            async with self._servers.send(server, head, body) as response:
                return _Answer(server, response.status, await response.read())
        except (aiohttp.ClientError, OSError, asyncio.TimeoutError) as error:
            return _Answer(server, 502, error_body(reason_of(error)))


def _of_all(answers: list[_Answer]) -> tuple[int, bytes]:
    """Return the first answer if all are good; else an error that says which server has done what."""
    if all(each.is_good for each in answers):
        return answers[0].status, answers[0].body
    done = [Done(each.server.name, "" if each.is_good else each.error()) for each in answers]
    return max(each.status for each in answers), error_body(failures(done))


class Done(NamedTuple):
    """What a server has made of a request for all servers.

    error   "" if it has done it
    """

    server: str
    error: str


def failures(done: list[Done]) -> str:
    """Return an error that says which server has done what; servers with the same error share its text."""
    names: dict[str, list[str]] = {}
    for each in done:
        names.setdefault(each.error, []).append(each.server)
    good = names.pop("", [])
    texts = [f"{_servers(same)}: {text}" for text, same in names.items()]
    if good:
        texts.append(f"done by {', '.join(good)}")
    return "; ".join(texts)


def _servers(names: list[str]) -> str:
    return f"server{'s' if len(names) > 1 else ''} {', '.join(names)}"


def merged_index(found: Iterable[tuple[Server, _Json]]) -> list[dict[str, _Json]]:
    """Return one repository index: a version is READY if it is on one server.

    `reason` then says on how many servers it is not.
    """
    entries: dict[tuple[str, str], list[tuple[Server, dict[str, _Json]]]] = {}
    for server, index in found:
        for each in index:
            key = (each["name"], each.get("version", ""))
            entries.setdefault(key, []).append((server, each))
    merged = []
    for same in entries.values():
        ready = [each for _, each in same if each.get("state") == "READY"]
        entry = dict((ready or [each for _, each in same])[0])
        other = [
            f"server {server.name}: {each.get('state') or 'not loaded'}"
            + (f" ({each['reason']})" if each.get("reason") else "")
            for server, each in same
            if each.get("state") != "READY"
        ]
        if other and ready:
            entry["reason"] = "; ".join(other)
        merged.append(entry)
    return merged


def merged_list(found: Iterable[_Json]) -> dict[str, _Json]:
    """Return one list of models: those of all servers, each once. In OpenAI's form, else in KServe's."""
    models: dict[str, _Json] = {}
    names: set[str] = set()
    is_openai = False
    for each in found:
        data, plain = (_list_in(each, "data"), _list_in(each, "models"))
        is_openai = is_openai or data is not None
        for model in data or ():
            if isinstance(model, dict) and isinstance(model.get("id"), str):
                models.setdefault(model["id"], model)
        names.update(name for name in plain or () if isinstance(name, str))
    if names and not is_openai:
        return {"models": sorted(names)}
    return {"object": "list", "data": list(models.values())}


def _list_in(answer: _Json, member: str) -> list[_Json] | None:
    found = answer.get(member) if isinstance(answer, dict) else None
    return found if isinstance(found, list) else None


def merged_statistics(found: Iterable[_Json]) -> dict[str, _Json]:
    """Return the statistics of all servers: counts and durations are sums."""
    merged: dict[tuple[str, str], dict[str, _Json]] = {}
    for statistics in found:
        for each in statistics.get("model_stats", ()):
            key = (each.get("name", ""), each.get("version", ""))
            merged[key] = _sum(merged[key], each) if key in merged else each
    return {"model_stats": list(merged.values())}


def _sum(one: _Json, other: _Json, name: str = "") -> _Json:
    """Return the sum of two values of statistics."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return {
            key: _sum(one[key], other[key], key)
            if key in one and key in other
            else {**one, **other}[key]
            for key in {**one, **other}
        }
    if isinstance(one, list) and isinstance(other, list):
        if name != "batch_stats":
            return one + other
        sizes = {each["batch_size"]: each for each in one}
        for each in other:
            size = each["batch_size"]
            sizes[size] = {**_sum(sizes[size], each), "batch_size": size} if size in sizes else each
        return [sizes[size] for size in sorted(sizes)]
    if (
        isinstance(one, int | float)
        and isinstance(other, int | float)
        and not isinstance(one, bool)
    ):
        # Triton writes the time of the last inference in milliseconds since 1970.
        return max(one, other) if name == "last_inference" else one + other
    return one
