"""TensorFlow is an extra, since its builds for GPUs and for CPUs differ. The first model imports it."""

from __future__ import annotations

import threading
from importlib.util import find_spec

from core.errors import invalid

_importing = threading.Lock()


def import_tensorflow(model: str) -> None:
    """Import TensorFlow for a model. Thread-safe. Raises CoreError(INVALID) if it is not installed.

    One thread at a time imports: modules of TensorFlow import each other in circles, and threads that begin
    at different ones would wait for each other.
    """
    if find_spec("tensorflow") is None:
        raise invalid(
            f"model '{model}': TensorFlow is not installed; install it with: pip install --find-links wheels "
            "'backend-tensorflow[cpu]', or [cuda] for GPUs of NVIDIA"
        )
    with _importing:
        import backend_tensorflow.framework  # noqa: F401
