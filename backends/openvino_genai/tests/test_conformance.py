"""The contract of engines."""

from backend_openvino_genai.conformance import TestContract as TestContract
