"""The contracts of backends and frontends as tests. An author inherits them and provides one small model:

    from core_testing import BackendConformance, Example
    from backend_negate import backend

    class TestNegate(BackendConformance):
        supports = {"batching", "cpu"}

        @pytest.fixture
        def example(self, tmp_path):
            return Example(backend, tmp_path, inputs={"x": X}, expected={"y": -X})

The model runs in a real server, which loads it from a folder, batches and splits requests, and unloads it.
`python -m core_testing backend_negate` runs the classes in the module `conformance` of the package.
"""

from pkgutil import iter_modules

import pytest

# pytest shows the values of failed assertions only of modules that are registered before their import.
pytest.register_assert_rewrite(*(f"{__name__}.{each.name}" for each in iter_modules(__path__)))

from core_testing.conformance import BackendConformance  # noqa: E402
from core_testing.example import Example  # noqa: E402
from core_testing.frontends import FrontendClient, FrontendConformance  # noqa: E402

__all__ = ["BackendConformance", "Example", "FrontendClient", "FrontendConformance"]
