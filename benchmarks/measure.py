"""Cells and rounds: measure every server and every scenario in turn, with the same bytes.

options ─► [measure] ─► Result.  All servers of a fleet run at the same time, and all but the measured one are
idle. Rounds alternate (A B A B …), so that both sides of a comparison run under the same conditions; so do
the scenarios of one protocol and one number of connections, which are also compared.
"""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.exchange import Exchange, Wrong, exchange
from benchmarks.load import form, generator_of
from benchmarks.load.generator import Failed, Generator, Target
from benchmarks.missing import Missing
from benchmarks.options import Options
from benchmarks.report.result import Result, Round, Row
from benchmarks.scenarios import SCENARIOS, Scenario
from benchmarks.servers.kind import Kind
from benchmarks.servers.running import NotStarted, Running, running

LeaveOut = Callable[[str, Exception], None]


@dataclass(frozen=True)
class Contender:
    """A server in a cell: its exchange, and the sizes of its responses."""

    server: Running
    exchange: Exchange
    target: Target


@dataclass
class Cell:
    """The rounds of one scenario, protocol, number of connections and server, and whether one has failed."""

    scenario: str
    protocol: str
    connections: int
    contender: Contender
    rounds: list[Round] = field(default_factory=list)
    failed: bool = False

    @property
    def server(self) -> str:
        return self.contender.server.name

    def __str__(self) -> str:
        return f"{self.server} in {self.scenario} by {self.protocol} over {self.connections} connections"


class Measure:
    """The cells of one run.

    leave_out   called with the name of a skipped measurement, and the reason
    cell_done   called with the rows of each cell, when they are in `result`
    """

    def __init__(
        self,
        options: Options,
        kinds: Sequence[Kind],
        result: Result,
        leave_out: LeaveOut,
        cell_done: Callable[[list[Row]], None],
    ):
        self._options = options
        self._kinds = kinds
        self._result = result
        self._leave_out = leave_out
        self._cell_done = cell_done
        self._generators = self._find_generators()

    def _find_generators(self) -> dict[str, Generator]:
        """Return the generators by protocol; missing ones are reported."""
        found = {}
        for protocol in self._options.protocol:
            try:
                found[protocol] = generator_of(
                    protocol, self._options.cache, self._options.load_core
                )
            except Missing as missing:
                self._leave_out(protocol, missing)
        return found

    def run(self, folder: Path) -> None:
        """Measure all scenarios; `folder` is for the servers' files."""
        scenarios = [SCENARIOS[name] for name in self._options.scenario]
        for fleet in dict.fromkeys(each.fleet for each in scenarios):
            of_fleet = [each for each in scenarios if each.fleet == fleet]
            with ExitStack() as stack:
                servers = dict(self._started(stack, fleet, folder / fleet, of_fleet))
                for protocol in self._generators:
                    for connections in self._options.connections:
                        self._measure(list(self._cells(of_fleet, protocol, connections, servers)))

    def _started(
        self, stack: ExitStack, fleet: str, folder: Path, scenarios: Sequence[Scenario]
    ) -> Iterator[tuple[Kind, Running]]:
        wanted = {name for each in scenarios for name in each.servers}
        for kind in self._kinds:
            if kind.name not in wanted or fleet not in kind.fleets:
                continue
            try:
                server = stack.enter_context(
                    running(kind, fleet, folder / kind.name, self._options.server_core)
                )
                yield kind, server
            except NotStarted as error:
                self._leave_out(f"{kind.name} with the models of '{fleet}'", error)

    def _cells(
        self,
        scenarios: Sequence[Scenario],
        protocol: str,
        connections: int,
        servers: dict[Kind, Running],
    ) -> Iterator[Cell]:
        for scenario in scenarios:
            if protocol not in scenario.protocols or connections > scenario.most:
                continue
            for contender in self._contenders(scenario, protocol, servers):
                yield Cell(scenario.name, protocol, connections, contender)

    def _contenders(
        self, scenario: Scenario, protocol: str, servers: dict[Kind, Running]
    ) -> Iterator[Contender]:
        """Yield the servers that support the scenario and have returned the right response."""
        for kind, server in servers.items():
            able = form(protocol) in kind.forms and (kind.counts or "perf" not in protocol)
            if kind.name not in scenario.servers or not able:
                continue
            models, samples = scenario.asked_of(kind.name)
            asked = exchange(form(protocol), models, *samples)
            http_port, grpc_port = server.ports.http, server.ports.grpc
            try:
                sizes = asked.check(http_port, grpc_port)
            except Wrong as wrong:
                self._leave_out(f"{kind.name} in {scenario.name} by {protocol}", wrong)
                continue
            yield Contender(server, asked, Target(http_port, grpc_port, sizes))

    def _measure(self, cells: Sequence[Cell]) -> None:
        """Measure every cell in each round, and write the rows of cells that have not failed."""
        # Round 0 is a warm-up and is not recorded.
        for number, cell in itertools.product(range(self._options.rounds + 1), cells):
            if cell.failed:
                continue
            load = self._generators[cell.protocol]
            seconds = self._options.seconds if number else 1.0
            try:
                found = one_round(load, cell.contender, cell.connections, seconds)
            except Failed as error:
                cell.failed = True
                self._leave_out(str(cell), error)
                if not cell.contender.server.alive():
                    self._begin_again(cell.contender.server)
                continue
            if number:
                cell.rounds.append(found)
        for scenario in dict.fromkeys(cell.scenario for cell in cells):
            rows = [
                Row(scenario, cell.protocol, cell.connections, cell.server, cell.rounds)
                for cell in cells
                if cell.scenario == scenario and cell.rounds and not cell.failed
            ]
            self._result.rows += rows
            self._cell_done(rows)

    def _begin_again(self, server: Running) -> None:
        """Restart a server that has ended during a cell, for the next cells."""
        try:
            server.begin_again()
        except NotStarted as error:
            self._leave_out(f"{server.name} from here on", error)


def one_round(load: Generator, contender: Contender, connections: int, seconds: float) -> Round:
    """Send for `seconds`. Raises Failed, also if the server has ended or sends no response."""
    server = contender.server
    with tempfile.TemporaryDirectory(prefix="benchmark-") as folder:
        before = server.cpu_seconds()
        found = load.run(contender.target, contender.exchange, connections, seconds, Path(folder))
        used_s = server.cpu_seconds() - before
    if not server.alive():
        raise Failed(f"{server.name} has ended; its log is {server.log}")
    if not found.requests:
        raise Failed(f"no right answer, {found.errors} errors")
    cpu_us = used_s / found.requests * 1e6
    return Round(
        found.requests, found.errors, found.seconds, found.p50_us, found.p99_us, round(cpu_us, 3)
    )
