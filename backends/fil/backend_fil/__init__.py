"""Run decision-tree forests of XGBoost, LightGBM, scikit-learn and treelite.

The import of this package imports treelite. It happens when the first model needs this backend.
"""

from backend_fil.backend import backend

__all__ = ["backend"]
