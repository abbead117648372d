"""The contract of engines."""

import pytest
from backend_openvino_genai import backend, conformance
from core_testing.engines import EngineExample, loaded


class TestContract(conformance.TestContract):
    @pytest.fixture
    def generating_alone(self, folder, tmp_path_factory):
        """The model as a folder, which loads in half of the time."""
        example = EngineExample(backend, folder, "Once upon a time there was", conformance.CONFIG)
        with loaded(example, tmp_path_factory.mktemp("models")) as found:
            yield found
