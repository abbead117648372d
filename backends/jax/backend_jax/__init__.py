"""backend-jax: functions that jax.export has written.

folder of a version ─► reading ─► backend ─► complete, check ─► instance ─► functions
"""

from backend_jax.installed import INSTALLED

if INSTALLED:
    from backend_jax.backend import backend
else:
    from backend_jax.without_jax import backend

__all__ = ["backend"]
