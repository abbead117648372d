"""Do what a page says, block by block, in an empty folder: write its files, run its commands and servers."""

from __future__ import annotations

import json
import os
import re
import runpy
import shutil
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from pages.blocks import ROOT, Block

_SMOKE = runpy.run_path(str(ROOT / ".ci" / "smoke.py"))
_SERVE = re.compile(r"^core[- ]serve ", re.MULTILINE)
_PORTS = {"http": "8000", "grpc": "8001", "metrics": "8002"}
_READY_S = 60
_COMMAND_S = 120


class Reader:
    """Follows one page. `close` ends its server.

    What the page calls localhost:8000, 8001 and 8002 are free ports. `python` is the interpreter of the
    tests; packages below backends/ and plugins/ of the folder can be imported, and their metadata is
    found in `site`.
    """

    def __init__(self, folder: Path):
        self._folder = folder
        ports = _SMOKE["free_ports"](3)
        self._ports = dict(zip(_PORTS, map(str, ports), strict=True))
        (folder / "examples").symlink_to(ROOT / "examples")
        self._server: subprocess.Popen[bytes] | None = None
        self._log = folder / "server.log"

    def read(self, block: Block) -> None:
        """Do what one block says. Raises AssertionError with the place in the page."""
        if block.mark == "not run":
            return
        if block.mark == "the test runs":
            self._shell(block.said, block)
        elif block.file and block.language != "console":
            path = self._folder / block.file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(self._here(block.text))
        elif block.language in ("sh", "bash"):
            self._commands(block)
        elif block.language == "console":
            self._exchanges(block)
        elif block.language == "python":
            (self._folder / "block.py").write_text(self._here(block.text))
            self._shell("python block.py", block)

    def log(self) -> str:
        """Return what the server has written so far."""
        return self._log.read_text(errors="replace") if self._log.exists() else ""

    def close(self) -> int | None:
        """End the server as Ctrl-C does. Return its exit status, or None if there is none."""
        if self._server is None:
            return None
        self._server.send_signal(signal.SIGINT)
        try:
            return self._server.wait(30)
        except subprocess.TimeoutExpired:
            self._server.kill()
            return self._server.wait()
        finally:
            self._server = None

    def _commands(self, block: Block) -> None:
        text = re.sub(r"\\\n\s*", "", block.text)
        script: list[str] = []
        for line in text.splitlines():
            if _SERVE.match(line):
                self._shell("\n".join(script), block)
                script = []
                self._serve(line, block)
            else:
                script.append(line)
        self._shell("\n".join(script), block)

    def _exchanges(self, block: Block) -> None:
        for exchange in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
            command, _, expected = re.sub(r"\\\n\s*", "", exchange).partition("\n")
            if _SERVE.match(command):
                self._serve(command, block)
                continue
            found = self._shell(command, block)
            assert _same(found.strip(), expected.strip()), (
                f"{block}: {command}\nthe page says\n{expected}\nthe answer is\n{found}"
            )

    def _shell(self, script: str, block: Block) -> str:
        if not script.strip():
            return ""
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", self._here(script)],
            cwd=self._folder,
            env=self._environment(),
            capture_output=True,
            text=True,
            timeout=_COMMAND_S,
            check=False,
        )
        assert done.returncode == 0, f"{block}: {script}\n{done.stdout}{done.stderr}\n{self.log()}"
        return done.stdout

    def _serve(self, command: str, block: Block) -> None:
        self.close()
        ports = [f"--{name}-port={port}" for name, port in self._ports.items()]
        with open(self._log, "wb") as log:
            self._server = subprocess.Popen(
                ["bash", "-c", f"exec {command.partition('#')[0]} {' '.join(ports)}"],
                cwd=self._folder,
                env=self._environment(),
                stdout=log,
                stderr=log,
            )
        end = time.monotonic() + _READY_S
        while not self._ready():
            assert self._server.poll() is None, f"{block}: {command}\n{self.log()}"
            assert time.monotonic() < end, f"{block}: not ready\n{self.log()}"
            time.sleep(0.05)

    def _ready(self) -> bool:
        try:
            url = f"http://127.0.0.1:{self._ports['http']}/v2/health/ready"
            with urllib.request.urlopen(url, timeout=5) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    def _here(self, text: str) -> str:
        for name, port in _PORTS.items():
            text = text.replace(f"localhost:{port}", f"localhost:{self._ports[name]}")
        return text

    def _environment(self) -> dict[str, str]:
        packages = [*self._folder.glob("backends/*"), *self._folder.glob("plugins/*")]
        paths = [*map(str, packages), str(self._folder / "site")]
        return {
            **os.environ,
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "PYTHONPATH": ":".join(paths),
            "PYTHONUNBUFFERED": "1",
            "REPOSITORY": str(ROOT),
        }


def _same(found: str, expected: str) -> bool:
    """Whether an output is as the page says: JSON with floats to two digits, text with … for any text."""
    values: list[Any] = []
    for text in (found, expected):
        try:
            values.append(json.loads(text))
        except ValueError:
            pattern = ".*".join(re.escape(part) for part in expected.split("…"))
            return re.fullmatch(pattern, found, re.DOTALL) is not None
    return bool(_SMOKE["same"](*values))


def have_curl() -> bool:
    return shutil.which("curl") is not None
