"""The contract of engines."""

from backend_llamacpp.conformance import TestContract as TestContract
