"""The contract that every backend keeps."""

from backend_openvino.conformance import TestOpenVino as TestOpenVino
