"""Run OpenVINO models and other formats that OpenVINO reads (ONNX, TensorFlow, TensorFlow Lite, Paddle).

The import of this package imports openvino. It happens when the first model needs this backend.
"""

from backend_openvino.backend import backend

__all__ = ["backend"]
