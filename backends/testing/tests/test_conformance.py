"""The contract of all backends, for each of the three."""

from backend_testing.conformance import TestIdentity as TestIdentity
from backend_testing.conformance import TestRepeat as TestRepeat
from backend_testing.conformance import TestSquare as TestSquare
