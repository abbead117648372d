"""backend-litert: LiteRT (TensorFlow Lite) models.

folder of a version ─► reading ─► backend ─► complete, check ─► instance ─► runs
"""

from backend_litert.backend import backend

__all__ = ["backend"]
