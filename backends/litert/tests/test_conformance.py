"""The contract of all backends."""

from backend_litert.conformance import TestLiteRt as TestLiteRt
