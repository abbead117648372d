"""Import TVM for the first model: its runtime only, unless the process has imported its compiler.

reading ─► [framework] ─► machine.
"""

from __future__ import annotations

import importlib
import os
import sys
import threading
from importlib.util import find_spec
from typing import Any

from core.errors import invalid

_RUNTIME = "TVM_USE_RUNTIME_LIB"  # makes TVM leave its compiler of 260 MB on the disk
_BIND = "TVM_BIND_THREADS"  # makes TVM bind the threads of each instance to the same cores
_importing = threading.Lock()


def import_tvm(model: str) -> Any:
    """Return the module `tvm`. Thread-safe. Raises CoreError(INVALID) if it cannot be imported."""
    with _importing:
        os.environ.setdefault(_BIND, "0")  # stays: TVM reads it at the first run of each thread
        if "tvm" in sys.modules:
            return sys.modules["tvm"]
        spec = find_spec("tvm")
        if (
            spec is None or spec.origin is None
        ):  # without an origin, it is just a folder of that name
            raise invalid(
                f"model '{model}': TVM is not installed; install it with: pip install --find-links wheels "
                "'backend-tvm[cpu]'"
            )
        given = os.environ.get(_RUNTIME)
        os.environ[_RUNTIME] = given or "1"
        try:
            return importlib.import_module("tvm")
        except ImportError as error:
            raise invalid(
                f"model '{model}': TVM cannot be imported: {error}; install apache-tvm 0.27 or later"
            ) from error
        finally:  # programs that the server starts may compile
            if given is None:
                del os.environ[_RUNTIME]
            else:
                os.environ[_RUNTIME] = given
