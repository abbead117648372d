"""backend-paddle: models of PaddlePaddle, run by Paddle Inference.

folder of a version ─► reading ─► backend ─► complete, check ─► instance ─► predictor

Files are read and checked without Paddle, which the first model that loads imports.
"""

from backend_paddle.backend import backend

__all__ = ["backend"]
