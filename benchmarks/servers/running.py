"""Running: one server process, from its start to its end.

Launch ─► [Running] ─► measure.  The server listens on loopback, on free ports; it is pinned to one core and
has a separate session. Its log is in its folder.
"""

from __future__ import annotations

import http.client
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks import processes
from benchmarks.servers.kind import Kind, Ports

START_S = 180.0
STOP_S = 40.0
POLL_S = 0.005  # resolution of the time to readiness


class NotStarted(Exception):
    """Error for a server that has ended or was not ready in time; with the last lines of its log."""


def free_ports() -> Ports:
    """Return ports that are not in use."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(3)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return Ports(*ports)


class Running:
    """A started server.

    ready_s   seconds from the start of the process to readiness
    """

    def __init__(self, kind: Kind, fleet: str, folder: Path, core: int):
        folder.mkdir(parents=True)
        self.name = kind.name
        self.ports = free_ports()
        self.log = folder.with_suffix(".log")
        self._folder = folder
        self._core = core
        self._launch = kind.launch(fleet, self.ports, folder)
        self._begin()

    def _begin(self) -> None:
        start = time.monotonic()
        with open(self.log, "ab") as log:
            self._process = subprocess.Popen(
                self._launch.command,
                env={**os.environ, **self._launch.environment},
                cwd=self._folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=lambda: os.sched_setaffinity(0, {self._core}),
            )
        self.pid = self._process.pid
        try:
            self._wait_until_ready(start + START_S)
        except BaseException:
            self.stop()
            raise
        self.ready_s = time.monotonic() - start

    def begin_again(self) -> None:
        """Restart a server that has ended, on the same ports. Raises NotStarted."""
        self.stop()
        self._begin()

    def _wait_until_ready(self, end: float) -> None:
        while time.monotonic() < end:
            if self._process.poll() is not None:
                raise NotStarted(
                    f"{self.name} ended with {self._process.returncode}: {self._last_words()}"
                )
            if self._ready():
                return
            time.sleep(POLL_S)
        raise NotStarted(f"{self.name} was not ready in {START_S:.0f} s: {self._last_words()}")

    def _ready(self) -> bool:
        connection = http.client.HTTPConnection("127.0.0.1", self.ports.http, timeout=5)
        try:
            connection.request("GET", "/v2/health/ready")
            return connection.getresponse().status == 200
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()

    def _last_words(self) -> str:
        return self.log.read_text(errors="replace").strip()[-600:]

    def cpu_seconds(self) -> float:
        return processes.cpu_seconds(self.pid)

    def alive(self) -> bool:
        return self._process.poll() is None

    def stop(self) -> None:
        """Send SIGTERM, and after STOP_S SIGKILL to its remaining processes."""
        if self.alive():
            self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        for left in processes.tree(self.pid):
            try:
                os.kill(left.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass


@contextmanager
def running(kind: Kind, fleet: str, folder: Path, core: int) -> Iterator[Running]:
    """Start a server; yield it when it is ready; stop it afterwards. Raises NotStarted."""
    server = Running(kind, fleet, folder, core)
    try:
        yield server
    finally:
        server.stop()
