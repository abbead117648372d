"""backend-jax: functions that jax.export has written.

folder of a version ─► reading ─► backend ─► complete, check ─► instance ─► functions
"""

from backend_jax.backend import backend

__all__ = ["backend"]
