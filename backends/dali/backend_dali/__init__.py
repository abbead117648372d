"""backend-dali: pipelines of NVIDIA DALI, which prepare data before a model.

folder of a version ─► serializing, definition ─► reading ─► complete, check ─► runner ─► instance
"""

from backend_dali.backend import backend

__all__ = ["backend"]
