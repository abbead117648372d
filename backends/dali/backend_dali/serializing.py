"""Serialize the pipeline of a Python file, in a process of its own: its code stays out of the server.

dali.py ─► [serializing] ─► definition.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from functools import lru_cache
from pathlib import Path

_PATIENCE_S = 600  # the import of DALI alone takes seconds
_PROGRAM = """
import importlib.util, sys
from nvidia.dali._utils.autoserialize import invoke_autoserialize
spec = importlib.util.spec_from_file_location("pipeline_of_the_model", sys.argv[1])
module = importlib.util.module_from_spec(spec)
sys.modules[spec.name] = module
spec.loader.exec_module(module)
invoke_autoserialize(module, sys.argv[2])
"""


def serialized(path: Path) -> bytes:
    """Return the pipeline that a file marks with @autoserialize, serialized. Thread-safe.

    It runs the file once for as long as the file does not change. Modules beside the file can be imported.
    Raises ValueError with the last line of the error.
    """
    about = path.stat()
    return _run(path, about.st_mtime_ns, about.st_size)


@lru_cache(maxsize=64)
def _run(path: Path, changed_ns: int, size: int) -> bytes:
    with tempfile.TemporaryDirectory(prefix="core-dali-") as folder:
        target = Path(folder) / "model.dali"
        try:
            done = subprocess.run(
                [sys.executable, "-c", _PROGRAM, str(path.absolute()), str(target)],
                cwd=path.absolute().parent,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                check=False,
                timeout=_PATIENCE_S,
            )
        except subprocess.TimeoutExpired:
            raise ValueError(f"it runs for more than {_PATIENCE_S} s") from None
        if done.returncode or not target.is_file():
            raise ValueError(_reason(done))
        return target.read_bytes()


def _reason(done: subprocess.CompletedProcess[str]) -> str:
    lines = [each.strip() for each in done.stderr.splitlines() if each.strip()]
    return lines[-1][:1000] if lines else f"its process ended with status {done.returncode}"
