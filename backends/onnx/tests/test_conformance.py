"""The contract of all backends."""

from backend_onnx.conformance import TestOnnx as TestOnnx
