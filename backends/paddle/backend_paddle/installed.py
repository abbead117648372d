"""Paddle is an extra, since its builds for GPUs and for CPUs differ. The first model imports it."""

from __future__ import annotations

import sys
import threading
from importlib.util import find_spec

from core.errors import invalid

_importing = threading.Lock()


def import_paddle(model: str) -> None:
    """Import Paddle for a model. Thread-safe.

    Raises CoreError(INVALID) if it is not installed, or would end the process, which has TensorFlow.
    """
    if "tensorflow" in sys.modules and "paddle" not in sys.modules:
        raise invalid(
            f"model '{model}': the import of Paddle would end this process, since TensorFlow is loaded in "
            "it; give the model a process of its own with the parameter EXECUTION_MODE 'process' in "
            "config.pbtxt"
        )
    spec = find_spec("paddle")
    if spec is None or spec.origin is None:  # without an origin, it is just a folder of that name
        raise invalid(
            f"model '{model}': Paddle is not installed; install it with: pip install --find-links wheels "
            "'backend-paddle[cpu]', or paddlepaddle-gpu for GPUs of NVIDIA, which Paddle's own index has"
        )
    with _importing:  # modules of Paddle import each other in circles
        import backend_paddle.framework  # noqa: F401
