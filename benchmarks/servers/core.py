"""core: the server of the environment that this benchmark runs in.

Its identity backend is a separate distribution, installed into a folder of the cache that only the server
under test uses; so the server finds it like every backend.
"""

from __future__ import annotations

import compileall
import hashlib
import os
import platform
import subprocess
import sys
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from benchmarks.missing import Missing
from benchmarks.servers.kind import FLEETS, Kind, Launch, Ports

ROOT = Path(__file__).parents[2]
BACKEND = ROOT / "benchmarks" / "identity_backend"


class Core(Kind):
    name = "core"
    counts = True

    def install(self) -> Mapping[str, str]:
        self._backend = self.cache / "core" / f"identity-{_digest(BACKEND)}"
        if not self._backend.exists():
            half_made = self._backend.with_suffix(".part")
            done = subprocess.run(
                [
                    *(sys.executable, "-m", "pip", "install", "--quiet", "--upgrade"),
                    *("--disable-pip-version-check", "--no-deps", "--no-build-isolation"),
                    *("--target", str(half_made), str(BACKEND)),
                ],
                capture_output=True,
                text=True,
                check=False,
            )
            if done.returncode:
                raise Missing(f"cannot install {BACKEND}: {done.stderr.strip()[-400:]}")
            half_made.rename(self._backend)
        # pip does the same for installed distributions, such as those of the other servers.
        for package in ("core", "frontends"):
            compileall.compile_dir(ROOT / package, quiet=1)
        return {"python": platform.python_version(), "commit": _commit(), **_versions()}

    def launch(self, fleet: str, ports: Ports, folder: Path) -> Launch:
        path = os.pathsep.join(filter(None, [str(self._backend), os.environ.get("PYTHONPATH")]))
        return Launch(
            [
                *(sys.executable, "-m", "core.serve"),
                *(f"--model-repository={self.repositories / name}" for name in FLEETS[fleet]),
                f"--http-port={ports.http}",
                f"--grpc-port={ports.grpc}",
                f"--metrics-port={ports.metrics}",
            ],
            {
                "PYTHONPATH": path,
                "CORE_BLOCK": "backend-testing",  # its identity is another one
                "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            },
        )


def _versions() -> dict[str, str]:
    found = {}
    for name in ("core", "numpy", "onnxruntime"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    return found


def _commit() -> str:
    """Return the checkout's commit, with + if files differ from it."""
    words = ["git", "-C", str(ROOT), "describe", "--always", "--dirty=+"]
    try:
        done = subprocess.run(words, capture_output=True, text=True, check=False)
    except OSError:  # git is not installed
        return "unknown"
    return done.stdout.strip() or "unknown"


def _digest(folder: Path) -> str:
    files = sorted(path for suffix in ("*.py", "*.toml") for path in folder.rglob(suffix))
    return hashlib.sha256(b"\0".join(path.read_bytes() for path in files)).hexdigest()[:12]
