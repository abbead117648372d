"""The contract of all backends."""

from backend_openvino.conformance import TestOpenVino as TestOpenVino
