"""The contract of backends."""

from backend_fil.conformance import TestFil as TestFil
