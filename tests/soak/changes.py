"""Changes of the server while it serves: a coroutine for each name of the plan.

A change that the server does not confirm is a failure of the soak; its visible effects meanwhile are a
window or a truth of the ledger.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import random
import re
import shutil
import signal
import ssl
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path

from core import plugins
from soak import models
from soak.certificates import Certificates
from soak.http_client import Pool
from soak.ledger import Windows
from soak.server import Server
from soak.traffic import Facts

SEEN_S = 30.0  # until new connections get a new certificate
RENEWS = any(
    flag.name == "reload-secs" for flag in plugins.flags().rows
)  # whether the server looks at the files again

_KILLED = re.compile(r"Stub process .plus_\d+_\d+. is not healthy")


class Changes:
    """Loop thread. One change of a model at a time; different models change side by side.

    done     how often each has been confirmed
    failed   what was not
    """

    def __init__(
        self,
        server: Server,
        facts: Facts,
        windows: Windows,
        certificates: Certificates,
        chosen: random.Random,
    ) -> None:
        self.done: Counter[str] = Counter()
        self.failed: list[str] = []
        self._server = server
        self._facts = facts
        self._windows = windows
        self._certificates = certificates
        self._chosen = chosen
        self._http = Pool(server.ports.http)
        self._turns: dict[str, asyncio.Lock] = {}
        self._addend = 1
        self._overridden = False

    def of(self, name: str) -> Callable[[], Awaitable[None]] | None:
        """The change of that name, None where it is no change."""
        found: Callable[[], Awaitable[None]] | None = getattr(self, name, None)
        return found

    async def reload(self) -> None:
        """Files are newer: the same model again."""
        model = self._chosen.choice(["echo", "plus", "words", "repeat"])
        async with self._turn(model):
            self._touch(model)
            await self._load(model)

    async def reload_a_step(self) -> None:
        model = self._chosen.choice(["tripled", "step", "chain"])
        async with self._turn(model):
            self._touch(model)
            await self._load(model)

    async def reload_sequences(self) -> None:
        """Sequences end with the instances that hold them."""
        async with self._turn("sums"):
            with self._windows.open("sequences"):
                self._touch("sums")
                await self._load("sums")

    async def switch_versions(self) -> None:
        async with self._turn("scaled"):
            number = self._facts.version.value % len(models.NEW_VERSIONS) + 1
            models.put_version(self._server.models, number)
            with self._facts.version.change(number):
                await self._load("scaled")

    async def change_instances(self) -> None:
        async with self._turn("counted"):
            count = self._chosen.randint(1, 4)
            self._write("counted", "config.pbtxt", models.counted(count))
            await self._load("counted")

    async def override(self) -> None:
        """A load that brings its own configuration, or files too; then the repository's again."""
        async with self._turn("overridden"):
            self._addend += 1
            config, text = models.add(self._addend)
            parameters = {"config": _json_of(self._addend)}
            if self._overridden:
                self._write("overridden", "config.pbtxt", config)
                parameters = {}
            elif self._chosen.random() < 0.5:
                parameters["file:1/model.py"] = base64.b64encode(text.encode()).decode()
            self._overridden = not self._overridden
            with self._facts.addend.change(self._addend):
                await self._load("overridden", parameters)

    async def unload(self) -> None:
        async with self._turn("passing"):
            with self._windows.open("unload"):
                await self._ask("/v2/repository/models/passing/unload")
                await asyncio.sleep(self._chosen.uniform(0, 0.3))
                await self._load("passing")

    async def kill_a_worker(self) -> None:
        """One of the processes of `plus`."""
        if victims := self._processes():
            try:
                os.kill(self._chosen.choice(victims), signal.SIGKILL)
            except ProcessLookupError:  # it had ended before
                return
            self.done["kill a worker"] += 1

    def _processes(self) -> list[int]:
        """Of `plus`, those that are alive."""
        found = []
        for file in models.processes(self._server.models).iterdir():
            if Path(f"/proc/{file.name}/exe").exists():
                found.append(int(file.name))
            else:
                file.unlink(missing_ok=True)
        return sorted(found)

    async def renew_certificate(self) -> None:
        """Another certificate in the file: new connections get it, those that are there live on."""
        async with self._turn("certificate"):
            await asyncio.to_thread(self._certificates.renew)
            if RENEWS:
                if self._chosen.random() < 0.5:
                    self._server.process.send_signal(signal.SIGHUP)
                deadline = time.monotonic() + SEEN_S
                while await self.served_serial() != self._certificates.serial:
                    if time.monotonic() > deadline:
                        self.failed.append(f"certificate {self._certificates.serial} is not served")
                        return
                    await asyncio.sleep(0.2)
            self.done["renew_certificate"] += 1

    async def as_at_first(self) -> None:
        """As many instances and processes as at the start, nothing from load requests, and no connection."""
        if self._overridden:  # its files have a folder of their own
            await self.override()
        self._write("counted", "config.pbtxt", models.counted(2))
        await self._load("counted")
        self._http.close()
        for _ in range(200):
            if len(self._processes()) == 2:
                return
            await asyncio.sleep(0.05)
        self.failed.append("the processes of 'plus' did not come back")

    async def served_serial(self) -> int:
        """Serial number of the certificate that a new connection gets. Raises OSError."""
        context = ssl.create_default_context(cadata=self._certificates.root.decode())
        context.set_alpn_protocols(["h2"])
        _, writer = await asyncio.open_connection(
            "127.0.0.1", self._server.ports.grpc, ssl=context, server_hostname="localhost"
        )
        found = writer.get_extra_info("peercert")
        writer.transport.abort()
        return int(found["serialNumber"], 16)

    # how ------------------------------------------------------------------------

    def _turn(self, model: str) -> asyncio.Lock:
        return self._turns.setdefault(model, asyncio.Lock())

    def _touch(self, model: str) -> None:
        path = self._server.models / model / "config.pbtxt"
        self._write(model, "config.pbtxt", path.read_text())
        for other in path.parent.glob("*/model.*"):
            os.utime(other)

    def _write(self, model: str, path: str, text: str) -> None:
        """Write the file atomically, so that no reader sees half of it."""
        handle, part = tempfile.mkstemp(dir=self._server.models.parent)
        with os.fdopen(handle, "w") as file:
            file.write(text)
        shutil.move(part, self._server.models / model / path)

    async def _load(self, model: str, parameters: dict[str, str] | None = None) -> None:
        """Load a model; again if `kill_a_worker` has meanwhile killed a process of the new version."""
        path, body = f"/v2/repository/models/{model}/load", {"parameters": parameters or {}}
        while True:
            kills = self.done["kill a worker"]
            refusal = await self._refusal(path, body)
            if kills == self.done["kill a worker"] or not _KILLED.search(refusal):
                break
        if refusal:
            self.failed.append(refusal)
        self.done[f"load {model}"] += 1

    async def _ask(self, path: str) -> None:
        if refusal := await self._refusal(path, {}):
            self.failed.append(refusal)

    async def _refusal(self, path: str, body: dict[str, object]) -> str:
        """Send a request; return "" if it succeeds."""
        status, answer = await self._http.ask("POST", path, json.dumps(body).encode())
        return "" if status == 200 else f"{path}: {status} {answer[:300]!r}"

    def close(self) -> None:
        self._http.close()


def _json_of(addend: int) -> str:
    """The configuration of `overridden`, as a load request brings it."""
    return json.dumps(
        {
            "backend": "python",
            "input": [{"name": "INPUT0", "data_type": "TYPE_INT32", "dims": [-1]}],
            "output": [{"name": "OUTPUT0", "data_type": "TYPE_INT32", "dims": [-1]}],
            "parameters": {"ADDEND": {"string_value": str(addend)}},
        }
    )
