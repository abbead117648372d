"""ConsoleControl: what the console asks of every process of the server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from core.control import Area, ProcessResults, question
from core_console.lanes import Lanes
from core_console.merging import finished, merged
from core_console.notices import Notices
from core_console.process import process
from core_console.rows import Rows
from core_console.traces import TraceRing

if TYPE_CHECKING:
    from core.server import InferenceServer

Arguments = Any

_LISTING_TURNS = 15  # looks between two listings of the repositories, which read folders


def _state(answers: ProcessResults, arguments: Arguments) -> dict[str, Any]:
    """Return the rows of all processes that have answered, and a line about each process."""
    values = answers.values
    if not values:
        answers.all()
    return {
        "rows": merged({number: each["rows"] for number, each in values.items()}),
        "idle": next(iter(values.values()))["idle"],
        "noticed": sum(each["noticed"] for each in values.values()),
        "processes": [
            {**each["process"], "number": number} for number, each in sorted(values.items())
        ],
        "silent": list(answers.silent),
    }


def _lists(answers: ProcessResults, arguments: Arguments) -> list[dict[str, Any]]:
    found = [
        {**each, "process": number}
        for number, entries in answers.values.items()
        for each in entries
    ]
    return sorted(found, key=lambda each: -each["at_ms"])


class ConsoleControl(Area, name="console"):
    """What the page shows. Loop thread only.

    traces   None if the server writes its traces elsewhere
    """

    def __init__(self, server: InferenceServer, traces: TraceRing | None, notices: Notices):
        self._server = server
        self._traces = traces
        self._notices = notices
        self.lanes = Lanes()
        self._rows = Rows(server, self.lanes)
        self._loaded: set[str] = set()
        self._idle: list[dict[str, str]] = []
        self._turn = 0

    async def look(self) -> dict[str, Any]:
        """Return the state of all processes, with quantiles in place of sketches."""
        found = await self.state()
        if "processes" not in found:  # of a server with one process
            found["processes"] = [{**found.pop("process"), "number": 0}]
            found["silent"] = []
        return {**found, "rows": finished(found["rows"])}

    def rest(self) -> None:
        """Look at instances no more."""
        self.lanes.close()

    @question("statistics", _state, internal=True)
    async def state(self) -> dict[str, Any]:
        """Return rows, models that are not loaded, and facts about the process."""
        self.lanes.turn()
        rows = self._rows.collect()
        self.lanes.follow(self._rows.active)
        return {
            "rows": rows,
            "idle": self._unloaded({row["model"] for row in rows}),
            "noticed": self._notices.count,
            "process": process(self._server.account.held),
        }

    @question("trace", _lists, internal=True)
    async def traces(self, model: str = "") -> list[dict[str, Any]]:
        """Return the kept traces of one model or of all, the latest first."""
        return [] if self._traces is None else self._traces.listed(model)

    @question("logging", _lists, internal=True)
    async def notices(self) -> list[dict[str, Any]]:
        """Return the last warnings and errors of the log, the latest first."""
        return self._notices.listed()

    def _unloaded(self, loaded: set[str]) -> list[dict[str, str]]:
        """Return the models of the repositories that have no version here: name and reason."""
        self._turn += 1
        if loaded == self._loaded and self._turn % _LISTING_TURNS:
            return self._idle
        found = {}
        for entry in self._server.manager.index():
            space = entry.get("namespace")
            name = entry["name"] if space is None else f"{space}::{entry['name']}"
            if name not in loaded:
                found[name] = entry.get("reason", "")
        self._loaded = loaded
        self._idle = [{"model": name, "reason": reason} for name, reason in found.items()]
        return self._idle
