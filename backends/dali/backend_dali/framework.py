"""Import DALI for the first model.

reading ─► [framework] ─► runner.
"""

from __future__ import annotations

import importlib
import threading
import warnings
from importlib.util import find_spec
from typing import Any

from core.errors import invalid

_importing = threading.Lock()


def check_installed(model: str) -> None:
    """Raise CoreError(INVALID) if DALI is not installed."""
    try:
        spec = find_spec("nvidia.dali")
    except ModuleNotFoundError:
        spec = None
    if spec is None or spec.origin is None:  # without an origin, it is just a folder of that name
        raise invalid(
            f"model '{model}': DALI is not installed; install it with: pip install --find-links wheels "
            "'backend-dali[cuda12]', or [cuda13]; it runs on machines without a GPU too"
        )


def import_dali(model: str) -> Any:
    """Return the module `nvidia.dali`. Thread-safe. Raises CoreError(INVALID) if it cannot be imported."""
    check_installed(model)
    with _importing, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of operators whose names DALI changed
        try:
            return importlib.import_module("nvidia.dali")
        except (ImportError, OSError) as error:
            raise invalid(f"model '{model}': DALI cannot be imported: {error}") from error


def release_memory() -> None:
    """Give back the memory that DALI keeps for pipelines to come."""
    importlib.import_module("nvidia.dali.backend").ReleaseUnusedMemory()
