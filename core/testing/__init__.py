"""The contracts of backends and frontends as tests. An author inherits them and gives one small model:

    from core.testing import BackendConformance, Example
    from backend_negate import backend

    class TestNegate(BackendConformance):
        supports = {"batching", "cpu"}

        @pytest.fixture
        def example(self, tmp_path):
            return Example(backend, tmp_path, inputs={"x": X}, expected={"y": -X})

The model runs in a real core.Server: loaded from a folder, batched, split, unloaded. In the module
`conformance` of the package, such classes are found by `python -m core.testing backend_negate`.

conformance.py   BackendConformance: the groups together; kit.py: capabilities
example.py       Example: a small model and its true answers
served.py        Served: a Server on a thread of its own, for tests without coroutines
diary.py         Diary: what core called, and where it is to fail
fake_device.py   a device for tests on machines that have none
leftovers.py     what a backend may leave behind: threads, children, files, shared memory
answers.py batches.py refusals.py failures.py lifecycle.py concurrency.py streams.py state.py devices.py
native.py        the tests of backends
frontends/       FrontendConformance, and what an author of a frontend writes
plugin.py        fixtures for tests of one's own: pytest_plugins = ["core.testing.plugin"]
__main__.py      python -m core.testing

Needs pytest, which core itself does not: nothing else in core imports this package.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from core.testing.conformance import BackendConformance
    from core.testing.example import Example
    from core.testing.frontends import FrontendClient, FrontendConformance

__all__ = ["BackendConformance", "Example", "FrontendClient", "FrontendConformance"]

# Modules with tests: pytest shows what their assertions compared only if it is told before they are imported.
_GROUPS = (
    *(
        "answers",
        "batches",
        "concurrency",
        "devices",
        "failures",
        "lifecycle",
        "native",
        "refusals",
    ),
    *("state", "streams", "frontends"),
)
_PLACES = {
    "BackendConformance": "core.testing.conformance",
    "Example": "core.testing.example",
    "FrontendClient": "core.testing.frontends",
    "FrontendConformance": "core.testing.frontends",
}


def __getattr__(name: str) -> Any:
    # Not imported above: who has no pytest is told so by `python -m core.testing`, not by a traceback.
    if name not in _PLACES:
        raise AttributeError(f"module 'core.testing' has no attribute '{name}'")
    import pytest

    pytest.register_assert_rewrite(*(f"core.testing.{group}" for group in _GROUPS))
    return getattr(importlib.import_module(_PLACES[name]), name)
