"""The contracts of backends and frontends as tests. An author inherits them and gives one small model:

    from core_testing import BackendConformance, Example
    from backend_negate import backend

    class TestNegate(BackendConformance):
        supports = {"batching", "cpu"}

        @pytest.fixture
        def example(self, tmp_path):
            return Example(backend, tmp_path, inputs={"x": X}, expected={"y": -X})

The model runs in a real core.Server: loaded from a folder, batched, split, unloaded. In the module
`conformance` of the package, such classes are found by `python -m core_testing backend_negate`.

conformance.py   BackendConformance: the groups together; kit.py: capabilities
example.py       Example: a small model and its true answers
served.py        Served: a Server on a thread of its own, for tests without coroutines
call_log.py      CallLog: the calls of core to a backend; makes chosen calls fail
fake_device.py   a device for tests on machines that have none
leftovers.py     what a backend may leave behind: threads, children, files, shared memory
answers.py batches.py refusals.py failures.py lifecycle.py concurrency.py streams.py state.py devices.py
native.py        the tests of backends
frontends/       FrontendConformance, and what an author of a frontend writes
plugin.py        fixtures for tests of one's own: pytest_plugins = ["core_testing.plugin"]
__main__.py      python -m core_testing
"""

import pytest

# Modules with tests. pytest shows what their assertions compare only if it knows them before their import.
pytest.register_assert_rewrite(
    *(
        f"core_testing.{module}"
        for module in (
            "answers",
            "batches",
            "concurrency",
            "devices",
            "failures",
            "lifecycle",
            "native",
            "refusals",
            "state",
            "streams",
            "frontends",
        )
    )
)

from core_testing.conformance import BackendConformance  # noqa: E402
from core_testing.example import Example  # noqa: E402
from core_testing.frontends import FrontendClient, FrontendConformance  # noqa: E402

__all__ = ["BackendConformance", "Example", "FrontendClient", "FrontendConformance"]
