"""Disturber: what operators and a machine short of memory do to a server, while clients send requests."""

from __future__ import annotations

import os
import random
import signal
import threading
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from soak.server import Server

from benchmarks import processes
from memory_budget.clients import Clients

EVERY_S = 0.5
LOADS, KILLS = "loads by an operator", "killed processes"
NO_MEMORY = "no memory to load"  # of a load that is refused


class Disturber:
    """Loads models as an operator does, and kills child processes of models, until `stop`.

    done       what it has done → how often
    failures   texts of loads that failed, other than for lack of memory
    error      what has ended it before `stop`; None if nothing has
    """

    def __init__(self, server: Server, clients: Clients, models: int, kills: bool, seed: int):
        self.done: Counter[str] = Counter()
        self.failures: list[str] = []
        self.error: Exception | None = None
        self._loads: list[tuple[int, str]] = []  # number of the request before it, model
        self._clients, self._kills = clients, kills
        self._server, self._models, self._draw = server, models, random.Random(seed)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._ended.set()
        self._thread.join()

    def merged(self, trace: Sequence[str]) -> list[tuple[str, bool]]:
        """Return the models that were used, in order, and whether a request did: else an operator."""
        used = [(number, model, True) for number, model in enumerate(trace)]
        used += [(number, model, False) for number, model in self._loads]
        used.sort(key=lambda each: each[0])  # stable: a load comes after its request
        return [(model, by_request) for _, model, by_request in used]

    def _run(self) -> None:
        try:
            while not self._ended.wait(EVERY_S):
                self._disturb()
        except Exception as error:  # of any kind: without it, a soak would go on undisturbed
            self.error = error

    def _disturb(self) -> None:
        """Load a model, and now and then kill a process before."""
        if self._kills and self._draw.random() < 0.2:
            self._kill()
        name = f"m{self._draw.randrange(self._models)}"
        try:
            post(self._server, f"/v2/repository/models/{name}/load")
            self.done[LOADS] += 1
            self._loads.append((self._clients.begun, name))
        except urllib.error.HTTPError as error:
            text = error.read().decode()
            if NO_MEMORY in text:  # others were used more recently and are busy
                self.done[f"refused {LOADS}"] += 1
            else:
                self.failures.append(f"{name}: {error.code} {text}")

    def _kill(self) -> None:
        """Kill a child process of the server that runs a model; the server starts another one."""
        children = [
            each.pid
            for each in processes.tree(self._server.pid)
            if b"backend_python" in _command(_parent(each.pid))  # it is forked from a template
        ]
        if children:
            try:
                os.kill(self._draw.choice(children), signal.SIGKILL)
            except ProcessLookupError:  # its model was unloaded at this moment
                return
            self.done[KILLS] += 1


def _parent(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def post(server: Server, path: str, body: bytes = b"{}") -> bytes:
    """Return the answer of the server to a body."""
    request = urllib.request.Request(
        f"http://localhost:{server.ports.http}{path}", data=body, method="POST"
    )
    with urllib.request.urlopen(request, timeout=120) as response:
        found: bytes = response.read()
    return found
