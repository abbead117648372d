"""The routes of captures on the HTTP port."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, unquote

from core.errors import invalid, not_found, unavailable
from core_capture import CATEGORY
from core_capture.http.folders import CaptureFolders
from core_capture.http.forms import in_full, row
from core_capture.http.readers import check_readers
from core_capture.http.replaying import ReplayEvents, ReplayRequest
from core_capture.options import CaptureOptions
from core_capture.recording.control import CaptureControl
from core_capture.recording.selection import matches
from core_capture.records.reader import SUFFIX, CaptureReader, Place
from core_capture.records.record import Damaged
from frontends.http import route
from frontends.http.codec.json_text import read_control
from frontends.http.extra_routes import HttpRoutes
from frontends.http.message import EVENT_HEADERS, HttpRequest, HttpResponse
from frontends.http.services.metadata import json_answer

if TYPE_CHECKING:
    from core.server import InferenceServer

_CAPTURE = "/v2/captures/(?P<capture>[^/]+)"
_TAIL_BYTES = 32 << 20  # of a capture that are read for a list
_MOST_ROWS = 1000


class CaptureRoutes:
    """The services behind the routes. Event loop only; files are read on another thread."""

    def __init__(self, options: CaptureOptions, control: CaptureControl):
        self._folders = CaptureFolders(options)
        self._control = control
        self._reading = asyncio.Lock()  # one reader at a time, so that requests keep the processors
        self._replay: ReplayEvents | None = None

    def add_to(self, server: InferenceServer) -> None:
        """Add the routes to the HTTP port of a server. Call it in core_server_starting."""
        routes = HttpRoutes.of(server)
        routes.add(
            [
                route.row("GET", "/v2/captures", CATEGORY, self.listing),
                route.row("GET", f"{_CAPTURE}/records", CATEGORY, self.records),
                route.row(
                    "GET",
                    f"{_CAPTURE}/records/(?P<record>[^/]+)",
                    CATEGORY,
                    self.record,
                ),
                route.row("POST", f"{_CAPTURE}/replay", CATEGORY, self.replay),
            ]
        )
        routes.on_end(self.end)

    def end(self) -> None:
        """End a replay, because the server begins to stop."""
        if self._replay is not None:
            self._replay.end()

    async def listing(self, server: InferenceServer, call: HttpRequest) -> HttpResponse:
        """Return the captures, and what each process captures now."""
        found = await asyncio.to_thread(self._folders.listed)
        return json_answer(
            {
                "folder": None if self._folders.root is None else str(self._folders.root),
                "captures": found,
                "processes": await self._control.status(),
            }
        )

    async def records(self, server: InferenceServer, call: HttpRequest) -> HttpResponse:
        """Return the last requests of a capture, the latest first: ?model=, ?failed=true, ?limit=."""
        query = dict(parse_qsl(call.query, keep_blank_values=True))
        folder = self._folder(server, call)
        limit = _limit(query.pop("limit", "200"))
        model, failed = query.pop("model", ""), query.pop("failed", "false") == "true"
        if query:
            raise invalid(
                f"unknown query parameter '{min(query)[:64]}'; expected model, failed, limit"
            )

        def read() -> dict[str, Any]:
            places, left_out = CaptureReader(folder).tail(_TAIL_BYTES)
            models: dict[str, int] = {}
            for _, each in places:
                models[each.model] = models.get(each.model, 0) + 1
            chosen = [
                (place, each)
                for place, each in places
                if (not model or matches(each.model, [model])) and (each.failed or not failed)
            ]
            return {
                "records": [row(place, each) for place, each in chosen[:limit]],
                "count": len(chosen),
                "failed": sum(each.failed for _, each in places),
                "models": models,
                "bytes_left_out": left_out,
            }

        async with self._reading:
            return json_answer(await asyncio.to_thread(read))

    async def record(self, server: InferenceServer, call: HttpRequest) -> HttpResponse:
        """Return one request of a capture with its messages."""
        folder = self._folder(server, call)
        name, _, at = unquote(call.captures["record"]).rpartition(":")
        is_number = at.isascii() and at.isdigit() and len(at) < 19
        is_name = Path(name).name == name and name.endswith(SUFFIX) and "\0" not in name
        if not is_number or not is_name:
            raise not_found(f"'{name[:64]}:{at[:20]}' is no record of a capture")
        place = Place(folder / name, int(at))

        def read() -> dict[str, Any]:
            try:
                return in_full(place, CaptureReader.read(place))
            except (Damaged, OSError) as error:
                raise not_found(f"there is no record {name}:{at} any more: {error}") from None

        return json_answer(await asyncio.to_thread(read))

    async def replay(self, server: InferenceServer, call: HttpRequest) -> HttpResponse:
        """Send the requests of a capture to this server again, and return events with its progress."""
        folder = self._folder(server, call)
        wanted = ReplayRequest.of(read_control(call.body) if len(call.body) else {})
        async with self._reading:
            if self._replay is not None and self._replay.runs:
                raise unavailable("a replay is running; wait for its end")
            events = self._replay = await wanted.begin(server, folder, call.headers)
        return HttpResponse(200, EVENT_HEADERS, b"", events)

    def _folder(self, server: InferenceServer, call: HttpRequest) -> Path:
        check_readers(server.options)
        return self._folders.folder(unquote(call.captures["capture"]))


def _limit(text: str) -> int:
    limit = int(text) if text.isascii() and text.isdigit() and len(text) < 9 else 0
    if not 1 <= limit <= _MOST_ROWS:
        raise invalid(f"limit is '{text[:64]}'; expected a whole number from 1 to {_MOST_ROWS}")
    return limit
