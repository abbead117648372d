"""The contract that every backend keeps."""

from backend_onnx.conformance import TestOnnx as TestOnnx
