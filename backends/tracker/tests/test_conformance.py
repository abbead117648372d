"""The contract of every backend."""

from backend_tracker.conformance import TestTracker as TestTracker
