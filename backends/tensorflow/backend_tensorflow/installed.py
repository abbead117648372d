"""Whether TensorFlow is installed: it is an extra, since its builds for GPUs and for CPUs differ."""

from __future__ import annotations

from importlib.util import find_spec

from core.errors import invalid


def check_installed(model: str) -> None:
    """Raise CoreError(INVALID) for a model if TensorFlow is not installed."""
    if find_spec("tensorflow") is None:
        raise invalid(
            f"model '{model}': TensorFlow is not installed; install it with: pip install --find-links wheels "
            "'backend-tensorflow[cpu]', or [cuda] for GPUs of NVIDIA"
        )
