"""Virtual environments of other servers, each in a folder of the cache."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.missing import Missing

_VERSIONS = """
import json, sys
from importlib.metadata import version
print(json.dumps({name: version(name) for name in sys.argv[1:]} | {"python": sys.version.split()[0]}))
"""


class Environment:
    """The virtual environment in `folder`, with `requirements` in pip's form.

    An existing environment with all distributions is used unchanged.
    """

    def __init__(self, folder: Path, requirements: Sequence[str]):
        self.folder = folder
        self.requirements = requirements
        self.python = folder / "bin" / "python"

    @property
    def site(self) -> Path:
        """Return the folder site-packages."""
        return next((self.folder / "lib").glob("python3.*/site-packages"))

    def ensure(self) -> Mapping[str, str]:
        """Install missing distributions; return distribution → version. Raises Missing with pip's errors."""
        if (found := self._versions()) is not None:
            return found
        self._run([sys.executable, "-m", "venv", str(self.folder)])
        pip = [str(self.python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        self._run([*pip, *self.requirements])
        found = self._versions()
        if found is None:
            raise Missing(f"{self.folder} lacks some of {', '.join(self.requirements)}")
        return found

    def _versions(self) -> Mapping[str, str] | None:
        """Return distribution → version; None if the environment or a distribution is missing."""
        if not self.python.exists():
            return None
        names = [requirement.partition("==")[0] for requirement in self.requirements]
        done = subprocess.run(
            [str(self.python), "-c", _VERSIONS, *names], capture_output=True, text=True, check=False
        )
        if done.returncode:
            return None
        found: dict[str, str] = json.loads(done.stdout)
        return found

    def _run(self, command: Sequence[str]) -> None:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            errors = [line for line in done.stderr.splitlines() if not line.startswith("WARNING")]
            words = " ".join(errors[-3:]) or f"status {done.returncode}"
            raise Missing(f"cannot install {' '.join(self.requirements)}: {words}")
