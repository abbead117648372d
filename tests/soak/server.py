"""The server under test: its process, its resources and its leftovers. Linux only."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

from core_testing.leftovers import shared_memory

from benchmarks import processes
from benchmarks.servers.running import free_ports

START_S = 120.0
EXIT_TIMEOUT_S = 30


class Server:
    """`python -m core.serve` in a separate session; all of its temporary files are in one folder.

    folder   empty; gets `models`, `tmp` and server.log
    """

    def __init__(self, folder: Path, *options: str) -> None:
        self.models = folder / "models"
        self.ports = free_ports()
        self._temporary = folder / "tmp"
        self._temporary.mkdir()
        self.log = folder / "server.log"
        self._shared_before = shared_memory()
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                [
                    *(sys.executable, "-m", "core.serve", f"--model-repository={self.models}"),
                    f"--http-port={self.ports.http}",
                    f"--grpc-port={self.ports.grpc}",
                    f"--metrics-port={self.ports.metrics}",
                    f"--exit-timeout-secs={EXIT_TIMEOUT_S}",
                    *options,
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                env={**os.environ, "TMPDIR": str(self._temporary)},
            )
        self.pid = self.process.pid

    def alive(self) -> bool:
        return self.process.poll() is None

    def last_words(self) -> str:
        return self.log.read_text(errors="replace")[-2000:]

    def signal(self) -> None:
        self.process.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """End whatever is left of it."""
        for each in processes.tree(self.pid):
            try:
                os.kill(each.pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        self.process.wait()

    # resources -----------------------------------------------------------------

    def resident_mib(self) -> float:
        """Memory of the server's own process that is in RAM."""
        text = Path(f"/proc/{self.pid}/status").read_text()
        return int(text.split("VmRSS:")[1].split()[0]) / 1024

    def pss_mib(self) -> float:
        """Of all its processes, each page once."""
        return processes.pss_bytes(self.pid) / 2**20

    def threads(self) -> int:
        return len(os.listdir(f"/proc/{self.pid}/task"))

    def descriptors(self) -> Counter[str]:
        """Of the server's own process, by their kind."""
        found: Counter[str] = Counter()
        for link in Path(f"/proc/{self.pid}/fd").iterdir():
            try:
                # Files have random names: core-requests-a1b2c3d4 (deleted).
                name = re.sub(r"-[a-z0-9_]+ \(deleted\)", "", os.readlink(link))
                found[re.sub(r"[0-9]+", "", name).replace(str(self.models), "")] += 1
            except OSError:
                continue
        return found

    # leftovers ------------------------------------------------------------------

    def leftovers(self) -> list[str]:
        """Return the remaining objects after its end."""
        deadline = time.monotonic() + 5
        while (left := processes.tree(self.pid)) and time.monotonic() < deadline:
            time.sleep(0.05)
        found = [f"process {each.pid}" for each in left]
        found += [f"/dev/shm/{name}" for name in sorted(shared_memory() - self._shared_before)]
        found += [f"temporary {path.name}" for path in sorted(self._temporary.iterdir())]
        found += [f"listening port {port}" for port in self._listening()]
        return found

    def _listening(self) -> list[int]:
        ports = {self.ports.http, self.ports.grpc, self.ports.metrics}
        found = []
        for table in ("tcp", "tcp6"):
            for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
                words = line.split()
                if words[3] == "0A" and (port := int(words[1].rpartition(":")[2], 16)) in ports:
                    found.append(port)
        return found
