"""The contract of backends."""

from backend_openvino.conformance import TestOpenVino as TestOpenVino
