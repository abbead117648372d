"""Whether JAX is installed: it is an extra, since its builds for GPUs and for CPUs differ."""

from __future__ import annotations

from importlib.util import find_spec

from core.errors import CoreError, invalid

_NEEDED = ("jax", "flatbuffers")
_MISSING = [each for each in _NEEDED if find_spec(each) is None]

INSTALLED = not _MISSING


def not_installed(model: str) -> CoreError:
    """Return the error for a model."""
    return invalid(
        f"model '{model}': {' and '.join(_MISSING)} is not installed; install it with: pip install "
        "--find-links wheels 'backend-jax[cpu]', or [cuda] for GPUs of NVIDIA"
    )
