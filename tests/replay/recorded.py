"""Runs the conformance suite with captures."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Recorded:
    """What one server of the suite has left.

    folder       has `repository` as it was at the start, and `traffic`
    repository   where the models were: some of them answer with their path
    options      of its command line, without ports and repository
    environment  variables beside those of the suite
    """

    folder: Path
    repository: Path
    options: list[str]
    environment: dict[str, str]

    @property
    def traffic(self) -> Path:
        return self.folder / "traffic"

    @classmethod
    def of(cls, folder: Path) -> Recorded:
        found: dict[str, Any] = json.loads((folder / "server.json").read_text())
        return cls(folder, Path(found["repository"]), found["options"], found["environment"])

    @classmethod
    def all(cls, folder: Path) -> list[Recorded]:
        """Return the servers below a folder that have served requests, in the order of their starts."""
        found = sorted(folder.glob("server-*"), key=lambda path: int(path.name.partition("-")[2]))
        return [cls.of(path) for path in found if any((path / "traffic").glob("*.corecap"))]


def record(folder: Path, chosen: list[str]) -> list[Recorded]:
    """Run the suite, or the chosen files of it. Return the servers that have served requests.

    Raises CalledProcessError if a test fails.
    """
    tests = chosen or ["tests/conformance"]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests]
    subprocess.run([*command, f"--capture-traffic={folder}"], cwd=ROOT, check=True)
    return Recorded.all(folder)
