"""backend-tensorflow: SavedModels and GraphDefs of TensorFlow.

folder of a version ─► saved_model, graph_def ─► backend ─► complete, check ─► instance ─► session

TensorFlow is imported by the first model that loads.
"""

from backend_tensorflow.backend import backend

__all__ = ["backend"]
