"""The contract of all backends."""

from backend_tensorflow.conformance import TestTensorFlow as TestTensorFlow
