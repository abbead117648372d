"""The contract of all backends."""

from backend_fil.conformance import TestFil as TestFil
