"""Run TensorRT engines through TensorRT's Python interface, with memory and streams of CuPy.

Only cuda.py, loading.py, facts.py, context.py, slot.py and run.py use CUDA or TensorRT. Neither is imported
before a model needs it.
"""

from backend_tensorrt.backend import backend

__all__ = ["backend"]
