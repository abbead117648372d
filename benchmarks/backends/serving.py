"""A server for the models of a folder, on one core."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[2]
START_S = STOP_S = 60.0


@contextmanager
def serving(repository: Path, core: int) -> Iterator[int]:
    """Run a server; yield its HTTP port when it is ready. Raises RuntimeError with its log if it fails."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    log = repository.parent / "server.log"
    command = [sys.executable, "-m", "core.serve", f"--model-repository={repository}"]
    command += ["--http-address=127.0.0.1", f"--http-port={port}"]
    command += ["--allow-grpc=false", "--allow-metrics=false"]
    # A model without dynamic_batching shall have none: some backends would add it.
    command += ["--disable-auto-complete-config"]
    with log.open("w") as output:
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            stdout=output,
            stderr=subprocess.STDOUT,
            preexec_fn=lambda: os.sched_setaffinity(0, {core}),
        )
    try:
        _wait(port, process, log)
        yield port
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(STOP_S)


def _wait(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + START_S
    while time.monotonic() < end and process.poll() is None:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/v2/health/ready", timeout=5):
                return
        except OSError:
            time.sleep(0.05)
    raise RuntimeError(f"the server is not ready: {log.read_text()[-800:]}")
