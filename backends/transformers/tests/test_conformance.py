"""The contract of engines."""

from backend_transformers.conformance import TestContract as TestContract
