"""backend-jax: functions that jax.export has written.

folder of a version ─► reading ─► backend ─► complete, check ─► instance ─► functions
"""

from importlib.util import find_spec

for _name in ("jax", "flatbuffers"):
    if find_spec(_name) is None:
        raise ModuleNotFoundError(
            f"{_name} is not installed; install it with: pip install --find-links wheels 'backend-jax[cpu]', "
            "or [cuda] for GPUs of NVIDIA"
        )

from backend_jax.backend import backend  # noqa: E402  the check above names the extra

__all__ = ["backend"]
