"""The processes: servers on fixed ports, and a router before them. Linux only."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

from benchmarks import processes
from benchmarks.servers.running import free_ports
from router_soak.models import NAMES

START_S = 120.0


def ask(port: int, path: str, value: Any = None, method: str = "GET") -> Any:
    """Return the JSON of an answer, or its text. Raises OSError."""
    data = None if value is None else json.dumps(value).encode()
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", data, method=method)
    with urllib.request.urlopen(request, timeout=60) as found:
        text = found.read().decode()
    return json.loads(text) if text[:1] in "[{" and text else text


class Program:
    """A process of its own session, with a log."""

    def __init__(self, log: Path, *command: str) -> None:
        self.log = log
        self._command = [sys.executable, "-m", "core", *command]
        self.process: subprocess.Popen[bytes]
        self.begin()

    def begin(self) -> None:
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def signal(self, number: int) -> None:
        self.process.send_signal(number)

    async def ended(self, limit_s: float) -> int | None:
        """Return the exit status; None if the process goes on."""
        for _ in range(int(limit_s / 0.02)):
            if self.process.poll() is not None:
                break
            await asyncio.sleep(0.02)
        return self.process.returncode

    def kill(self) -> None:
        """End whatever is left of it."""
        for each in processes.tree(self.process.pid):
            try:
                os.kill(each.pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        self.process.wait()

    def resident_mib(self) -> float:
        text = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(text.split("VmRSS:")[1].split()[0]) / 1024

    def last_words(self) -> str:
        return self.log.read_text(errors="replace")[-1500:]


class Server(Program):
    """`core serve` on ports that stay the same."""

    def __init__(self, folder: Path, number: int, models: Path) -> None:
        self.ports = free_ports()
        super().__init__(
            folder / f"server{number}.log",
            *("serve", str(models), "--model-control-mode=explicit"),
            *(f"--load-model={each}" for each in NAMES),
            *(f"--http-port={self.ports.http}", f"--grpc-port={self.ports.grpc}"),
            *(f"--metrics-port={self.ports.metrics}", "--exit-timeout-secs=20"),
        )

    @property
    def name(self) -> str:
        return f"127.0.0.1:{self.ports.http}"

    @property
    def address(self) -> str:
        return f"{self.name}:{self.ports.grpc}:{self.ports.metrics}"


class Router(Program):
    """`core router` before servers."""

    def __init__(self, folder: Path, servers: list[Server], *options: str) -> None:
        self.ports = free_ports()  # metrics: for operators
        super().__init__(
            folder / "router.log",
            *("router", f"--servers={','.join(each.address for each in servers)}"),
            *(f"--http-port={self.ports.http}", f"--grpc-port={self.ports.grpc}"),
            *(f"--admin-port={self.ports.metrics}", "--http-address=127.0.0.1", *options),
        )

    async def operate(self, path: str, method: str = "GET") -> Any:
        return await asyncio.to_thread(ask, self.ports.metrics, path, None, method)

    async def server(self, name: str) -> dict[str, Any]:
        """Return what the router knows of a server."""
        found = {each["name"]: each for each in await self.operate("/servers")}
        return dict(found[name])

    async def until_ready(self, name: str) -> None:
        """Wait until requests reach a server with all its models."""
        for _ in range(int(START_S / 0.1)):
            try:
                found = await self.server(name)
            except OSError:  # it has just begun
                found = {"state": "", "models": {}}
            models = found["models"]
            if found["state"] == "ready" and all(
                models.get(each, {}).get("versions") for each in NAMES
            ):
                return
            await asyncio.sleep(0.1)
        raise RuntimeError(f"server {name} is not ready: {found}")

    async def metric(self, name: str) -> float:
        """Return the sum of the samples of a metric."""
        total = 0.0
        for line in (await self.operate("/metrics")).splitlines():
            if line.startswith((f"{name}{{", f"{name} ")):
                total += float(line.rsplit(" ", 1)[1])
        return total
