"""The contract of backends."""

from backend_onnx.conformance import TestOnnx as TestOnnx
