"""The contract of all backends."""

from backend_jax.conformance import TestJax as TestJax
