"""The contract of all backends."""

from backend_dali.conformance import TestDali as TestDali
