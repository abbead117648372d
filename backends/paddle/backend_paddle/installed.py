"""Paddle is an extra, since its builds for GPUs and for CPUs differ. The first model imports it."""

from __future__ import annotations

import threading
from importlib.util import find_spec

from core.errors import invalid

_importing = threading.Lock()


def import_paddle(model: str) -> None:
    """Import Paddle for a model. Thread-safe. Raises CoreError(INVALID) if it is not installed."""
    if find_spec("paddle") is None:
        raise invalid(
            f"model '{model}': Paddle is not installed; install it with: pip install --find-links wheels "
            "'backend-paddle[cpu]', or paddlepaddle-gpu for GPUs of NVIDIA, which Paddle's own index has"
        )
    with _importing:  # modules of Paddle import each other in circles
        import backend_paddle.framework  # noqa: F401
