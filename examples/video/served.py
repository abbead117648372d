"""Served: the server of serve.py in a process of its own, for programs that measure it."""

from __future__ import annotations

import contextlib
import http.client
import json
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
_PATIENCE_S = 120.0


class Served:
    """A server that watches videos. Leave it as a context manager to end it.

    models      repository
    videos      name → URL
    processor   on which it runs alone; None for all
    """

    def __init__(self, models: Path, videos: dict[str, str], processor: int | None = None):
        self.port = free_port()
        arguments = [
            sys.executable,
            str(FOLDER / "serve.py"),
            f"--model-repository={models}",
            f"--http-port={self.port}",
            *("--http-address=127.0.0.1", "--allow-grpc=false", "--allow-metrics=false"),
            *(f"--watch={name}={url}" for name, url in videos.items()),
        ]
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - as long as the process
        self.process = subprocess.Popen([*on(processor), *arguments], stderr=self._log)
        self._wait()

    def _wait(self) -> None:
        end = time.monotonic() + _PATIENCE_S
        while time.monotonic() < end and self.process.poll() is None:
            with contextlib.suppress(OSError), contextlib.closing(self._connection()) as connection:
                connection.request("GET", "/v2/health/ready")
                if connection.getresponse().status == 200:
                    return
            time.sleep(0.1)
        self.process.kill()
        self.process.wait()
        raise SystemExit(f"the server is not ready:\n{self.log()[-4000:]}")

    def log(self) -> str:
        """Return what the server has logged."""
        self._log.seek(0)
        return self._log.read().decode(errors="replace")

    def __enter__(self) -> Served:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(timeout=20)
        self.process.kill()
        self.process.wait()
        self._log.close()

    def _connection(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)

    def response(self, path: str) -> http.client.HTTPResponse:
        """Return the response to a GET, whose body has not been read."""
        connection = self._connection()
        connection.request("GET", path)
        return connection.getresponse()

    def events(self) -> Iterator[dict[str, Any]]:
        """Yield the events of all videos. They are subscribed when this returns."""
        answer = self.response("/watch/events")
        answer.readline()  # the comment that comes at once
        return events_of(answer)


def events_of(answer: http.client.HTTPResponse) -> Iterator[dict[str, Any]]:
    """Yield the events of a response of /watch/events."""
    with answer:
        for line in iter(answer.readline, b""):
            if line.startswith(b"data: "):
                yield json.loads(line[6:])


def models(folder: Path, instances: int = 0, **parameters: object) -> Path:
    """Copy the models of this folder, with parameters of the model `camera`; return the copy.

    instances   of that model, of which each takes one video; 0 for the backend's number
    """
    copy = folder / "models"
    shutil.copytree(FOLDER / "models", copy)
    with (copy / "camera" / "config.pbtxt").open("a") as file:
        for key, value in parameters.items():
            file.write(f'parameters {{ key: "{key}" value {{ string_value: "{value}" }} }}\n')
        if instances:
            file.write(f"instance_group [ {{ count: {instances} kind: KIND_CPU }} ]\n")
    return copy


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def on(processor: int | None) -> Sequence[str]:
    """Return the beginning of a command that runs on one processor."""
    return () if processor is None else ("taskset", "--cpu-list", str(processor))
