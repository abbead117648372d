"""Starts a server of the suite again, and replays its traffic."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

from conformance.launcher import free_ports

from replay.recorded import Recorded

_READY_S = 120.0


def replay(recorded: Recorded) -> dict[str, Any]:
    """Return the report of `core replay --compare bytes --json` for the traffic of a server."""
    above = recorded.repository.parent
    above.mkdir(parents=True)  # the suite has removed it
    try:
        shutil.copytree(recorded.folder / "repository", recorded.repository, symlinks=True)
        return _served(recorded)
    finally:
        shutil.rmtree(above, ignore_errors=True)


def _served(recorded: Recorded) -> dict[str, Any]:
    ports = free_ports(3)
    named = zip(("http", "grpc", "metrics"), ports, strict=True)
    command = [
        *(sys.executable, "-m", "core.serve", "--allow-client-shm=true"),
        f"--model-repository={recorded.repository}",
        *(f"--{name}-port={port}" for name, port in named),
        *recorded.options,
    ]
    environment = {**os.environ, "LC_ALL": "C.UTF-8", "PYTHONUTF8": "1", **recorded.environment}
    environment["PATH"] = f"{Path(sys.executable).parent}:{environment['PATH']}"
    with open(recorded.folder / "replayed.log", "wb") as log:
        server = subprocess.Popen(command, stdout=log, stderr=log, env=environment)
    try:
        _wait(server, ports[0])
        done = subprocess.run(
            [
                *(sys.executable, "-m", "core", "replay", recorded.traffic),
                *("--url", f"127.0.0.1:{ports[0]}", "--grpc-url", f"127.0.0.1:{ports[1]}"),
                *("--compare", "bytes", "--json", "--keep-order"),
                *_secrets(recorded),
            ],
            stdout=subprocess.PIPE,
            check=False,
        )
    finally:
        server.terminate()
        server.wait(60)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def _secrets(recorded: Recorded) -> list[str]:
    """Return the headers of restricted protocols: a capture does not have them."""
    found = []
    for option in recorded.options:
        name, _, value = option.partition("=")
        if name in ("--http-restricted-api", "--grpc-restricted-protocol"):
            key, _, secret = value.partition(":")[2].partition("=")
            prefix = "triton-grpc-protocol-" if "grpc" in name else ""
            found += ["--header", f"{prefix}{key}: {secret}"]
    return found


def _wait(server: subprocess.Popen[bytes], port: int) -> None:
    end = time.monotonic() + _READY_S
    while time.monotonic() < end:
        if server.poll() is not None:
            raise RuntimeError(f"the server has ended with {server.returncode}")
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/v2/health/live", timeout=5):
                return
        except OSError:
            time.sleep(0.1)
    raise RuntimeError(f"the server is not live after {_READY_S:g} s")
