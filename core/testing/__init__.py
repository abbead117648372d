"""The contract of a backend as tests. An author inherits them and gives one small model:

    from core.testing import BackendConformance, Example
    from backend_negate import backend

    class TestNegate(BackendConformance):
        supports = {"batching", "cpu"}

        @pytest.fixture
        def example(self, tmp_path):
            return Example(backend, tmp_path, inputs={"x": X}, expected={"y": -X})

The model runs in a real core.Server: loaded from a folder, batched, split, unloaded.

conformance.py   BackendConformance: the groups together, capabilities
example.py       Example: a small model and its true answers
served.py        Served: a Server on a thread of its own, for tests without coroutines
diary.py         Diary: what core called, and where it is to fail
leftovers.py     what a backend may leave behind: threads, children, files, shared memory
answers.py batches.py refusals.py failures.py lifecycle.py concurrency.py streams.py  the tests

Needs pytest, which core itself does not: nothing else in core imports this package.
"""

import pytest

_GROUPS = ("answers", "batches", "refusals", "failures", "lifecycle", "concurrency", "streams")
pytest.register_assert_rewrite(
    "core.testing.example", *(f"core.testing.{group}" for group in _GROUPS)
)

from core.testing.conformance import BackendConformance  # noqa: E402 - after the lines above
from core.testing.example import Example  # noqa: E402

__all__ = ["BackendConformance", "Example"]
