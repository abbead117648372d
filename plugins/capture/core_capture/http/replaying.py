"""A replay to this server, and its events.

POST …/replay ─► [ReplayRequest] ─► Plan, senders to the own ports ─► Replay ─► [ReplayEvents]
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from core.errors import CoreError, invalid, unavailable
from core_capture.http.forms import id_of
from core_capture.replay.compare import Comparison
from core_capture.replay.outcome import Sender
from core_capture.replay.pace import Pace
from core_capture.replay.plan import Plan
from core_capture.replay.report import as_json
from core_capture.replay.run import Replay
from core_capture.replay.tls import Tls
from frontends.http.message import encoded_event
from frontends.own_ports import authority, credentials

if TYPE_CHECKING:
    from core.server import InferenceServer

_TIMEOUT_S = 60.0
_CONCURRENCY = 100  # requests at a time
_LOOK_S = 0.5  # between two events


@dataclass(frozen=True)
class ReplayRequest:
    """What a caller wants to replay.

    speed      1 for the recorded pace; infinite: as fast as possible
    models     patterns of names; none: all
    limit      most records, the first ones; 0 for all
    compare    values, bytes or none
    tolerance  difference of floats that counts as equal
    """

    speed: float = 1.0
    models: list[str] = field(default_factory=list)
    limit: int = 0
    compare: str = "values"
    tolerance: float = 0.0

    @classmethod
    def of(cls, document: Any) -> ReplayRequest:
        """Read the JSON of a caller. Raises CoreError(INVALID) for what is none."""
        if not isinstance(document, dict):
            raise invalid("the body is no JSON object; expected {} or the settings of the replay")
        found = {**cls().__dict__, **document}
        if unknown := found.keys() - cls.__dataclass_fields__.keys():
            expected = ", ".join(cls.__dataclass_fields__)
            raise invalid(f"unknown member '{sorted(unknown)[0][:64]}'; expected {expected}")
        if found["speed"] == "max":
            found["speed"] = math.inf
        if not _is_number(found["speed"]) or not found["speed"] > 0:
            raise invalid(f'speed is {found["speed"]!r}; expected a factor above 0, or "max"')
        models = found["models"]
        if not isinstance(models, list) or not all(isinstance(each, str) for each in models):
            raise invalid(f"models is {models!r}; expected a list of names")
        if type(found["limit"]) is not int or found["limit"] < 0:
            raise invalid(f"limit is {found['limit']!r}; expected a whole number from 0 on")
        if found["compare"] not in ("values", "bytes", "none"):
            raise invalid(f"compare is {found['compare']!r}; expected values, bytes or none")
        if not _is_number(found["tolerance"]) or not found["tolerance"] >= 0:
            raise invalid(f"tolerance is {found['tolerance']!r}; expected a number from 0 on")
        return cls(**found)

    async def begin(
        self, server: InferenceServer, folder: Path, headers: Mapping[str, str]
    ) -> ReplayEvents:
        """Return the events of a replay of a capture to this server.

        headers   of the caller, whose credentials the replayed requests get
        Raises CoreError: INVALID if no record is left, UNAVAILABLE if the server has no address for it.
        """
        await asyncio.to_thread(_import_senders)
        senders, protocol = own_senders(server, headers)
        plan = await asyncio.to_thread(Plan, folder, self.models, "", self.limit)
        if not plan.items:
            raise invalid(f"the capture '{folder.name}' has no request of the given models")
        comparison = Comparison(self.compare == "bytes", float(self.tolerance))
        replay = Replay(
            plan,
            senders,
            None if self.compare == "none" else comparison,
            Pace(float(self.speed)),
            protocol,
            _CONCURRENCY,
        )
        return ReplayEvents(plan, replay, senders)


class ReplayEvents:
    """The rest of a response: progress twice a second, then the report. Event loop only.

    The replay ends with its client (frontends.http.message.Parts).
    """

    def __init__(self, plan: Plan, replay: Replay, senders: Mapping[str, Sender]):
        self._plan = plan
        self._replay = replay
        self._senders = senders
        self._closed = False
        self._task: asyncio.Task[Any] | None = None

    @property
    def runs(self) -> bool:
        """Return whether requests are sent, or will be."""
        return not self._closed and (self._task is None or not self._task.done())

    async def __aiter__(self) -> AsyncIterator[bytes]:
        self._task = asyncio.create_task(self._replay.run())
        while not self._task.done():
            yield self._progress()
            await asyncio.wait([self._task], timeout=_LOOK_S)
        try:
            report = as_json(self._task.result(), self._plan.duration_ns)
        except asyncio.CancelledError:
            yield _event("failed", {"error": "the server stops before the replay has ended"})
            return
        except CoreError as error:
            yield _event("failed", {"error": error.message})
            return
        except Exception as error:  # the stream ends with a reason
            yield _event("failed", {"error": f"the replay failed: {type(error).__name__}: {error}"})
            return
        for each in report["differences"]:
            each["id"] = id_of(self._plan.items[each["number"]][0])
        yield _event("report", report)

    async def aclose(self) -> None:
        """Send no more requests."""
        self._closed = True
        self.end()
        for each in self._senders.values():
            await each.close()

    def end(self) -> None:
        """Cancel what runs: the server stops, or the client has left."""
        if self._task is not None:
            self._task.cancel()

    def _progress(self) -> bytes:
        counts = self._replay.results.counts
        done = sum(counts.values())
        return _event("progress", {"total": len(self._plan.items), "done": done, **counts})


def _import_senders() -> None:
    """Import the clients, which a server without a replay does not need. That takes some 0.1 s."""
    from core_capture.replay import grpc_sender, http_sender  # noqa: F401


def own_senders(
    server: InferenceServer, headers: Mapping[str, str]
) -> tuple[dict[str, Sender], str]:
    """Return senders to the ports of this server, and the protocol for all records; "" for their own."""
    from core_capture.replay.grpc_sender import GrpcSender
    from core_capture.replay.http_sender import HttpSender

    listeners = {each.name: each for each in server.options.listeners()}
    http, grpc = listeners.get("http"), listeners.get("grpc")
    if http is None or not (place := authority(http)):
        raise unavailable(
            "a replay to this server needs an HTTP port that its options name; use core replay"
        )
    if http.mutual:
        raise unavailable(
            "the HTTP port of this server demands a certificate of each client, and the server has none: use "
            "core replay with --ssl-https-client-certificate-file"
        )
    url = f"{'https' if http.encrypted else 'http'}://{place}"
    own = credentials(server.options, headers)
    # The certificate of this server is for its public name.
    tls = Tls(verifies=False)
    senders: dict[str, Sender] = {"http": HttpSender(url, own, _TIMEOUT_S, tls)}
    if grpc is None or grpc.encrypted or not (place := authority(grpc)):
        return senders, "http"
    senders["grpc"] = GrpcSender(place, own, _TIMEOUT_S)
    return senders, ""


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _event(name: str, value: Any) -> bytes:
    return encoded_event(name, orjson.dumps(value))
