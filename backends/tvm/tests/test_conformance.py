"""The contract of all backends."""

from backend_tvm.conformance import TestTvm as TestTvm
