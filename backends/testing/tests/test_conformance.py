"""The contract of backends, tested with each of the three."""

from backend_testing.conformance import TestIdentity as TestIdentity
from backend_testing.conformance import TestRepeat as TestRepeat
from backend_testing.conformance import TestSquare as TestSquare
