"""Servers in processes of their own, with a model that notes each execution."""

import contextlib
import os
import re
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

from .conftest import Client

CONFIG = """backend: "noting"
input [ { name: "x" data_type: TYPE_FP32 dims: [ -1 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ -1 ] } ]
instance_group [ { count: 4 kind: KIND_CPU } ]
"""
BACKEND = """
import os, time
import core

class Noting(core.ModelInstance):
    def execute(self, batch):
        with open(os.environ["NOTES"], "ab", buffering=0) as file:
            file.write(b"%d\\n" % int(batch["x"].flat[0]))
        time.sleep(float(os.environ["TAKES_S"]))
        return {"y": batch["x"] * 2}

backend = core.Backend(instance=Noting)
"""


def write_model(folder: Path):
    """Write the repository `models` with model m, and the package of its backend."""
    package = folder / "packages"
    info = package / "noting-1.0.dist-info"
    info.mkdir(parents=True)
    (package / "noting.py").write_text(BACKEND)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: noting\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[core.backends]\nnoting = noting:backend\n")
    (folder / "models" / "m" / "1").mkdir(parents=True)
    (folder / "models" / "m" / "config.pbtxt").write_text(CONFIG)


def environment(folder: Path, takes_s):
    """Return the environment of a process that loads the model; it notes its executions in a file."""
    paths = [str(folder / "packages"), *filter(None, [os.environ.get("PYTHONPATH")])]
    own = {"NOTES": str(folder / "notes"), "TAKES_S": str(takes_s)}
    return {**os.environ, **own, "PYTHONPATH": os.pathsep.join(paths)}


class Process:
    """`core serve` in a folder, which can be killed and started again."""

    def __init__(self, folder: Path, *options, takes_s=0.01):
        self.folder, self.options, self.takes_s = folder, options, takes_s
        write_model(folder)
        self.starts = 0

    def start(self, headers=None):
        """Start the server; return its client when it is ready."""
        self.starts += 1
        self.log = self.folder / f"log{self.starts}"
        command = [
            *(sys.executable, "-m", "core.serve", f"--model-repository={self.folder / 'models'}"),
            *("--http-address=127.0.0.1", "--http-port=0", "--allow-grpc=false"),
            *("--allow-metrics=false", f"--jobs-folder={self.folder / 'jobs'}", *self.options),
        ]
        with open(self.log, "wb") as file:
            self.process = subprocess.Popen(
                command, stdout=file, stderr=file, env=environment(self.folder, self.takes_s)
            )
        return Client(self._port(), headers)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def stop(self):
        """End the server as an operator does; return its exit status."""
        if self.process.poll() is None:
            self.process.terminate()
        return self.process.wait(40)

    def notes(self):
        """Return the first value of each execution, in their order."""
        return [int(line) for line in (self.folder / "notes").read_text().split()]

    def _port(self):
        end = time.monotonic() + 60
        while time.monotonic() < end:
            text = self.log.read_text()
            assert self.process.poll() is None, text
            if match := re.search(r"Started HTTPService at 127.0.0.1:(\d+)", text):
                with contextlib.suppress(OSError):
                    urllib.request.urlopen(f"http://127.0.0.1:{match[1]}/v2/health/ready").close()
                    return int(match[1])
            time.sleep(0.05)
        raise AssertionError(self.log.read_text())
