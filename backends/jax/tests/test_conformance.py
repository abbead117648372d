"""The contract of all backends."""

import pytest

pytest.importorskip("jax", reason="JAX is an extra: make test-formats has it")

from backend_jax.conformance import TestJax as TestJax
