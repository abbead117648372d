"""The contract of engines."""

import pytest
from backend_openvino_genai import backend, conformance
from core_testing.engines import EngineExample, loaded
from core_testing.engines.cancelling import Cancelling
from core_testing.engines.kit import EngineKit

SEQUENCES = '"max_num_seqs" value { string_value: "16" }'


class TestContract(conformance.TestContract):
    @pytest.fixture
    def generating_alone(self, folder, tmp_path_factory):
        """The model as a folder, which loads in half of the time."""
        example = EngineExample(backend, folder, "Once upon a time there was", conformance.CONFIG)
        with loaded(example, tmp_path_factory.mktemp("models")) as found:
            yield found


class TestSixteenAtOnce(EngineKit):
    @pytest.fixture
    def engine_example(self, folder):
        config = conformance.CONFIG.replace('"max_num_seqs" value { string_value: "4" }', SEQUENCES)
        assert SEQUENCES in config
        return EngineExample(backend, folder, "Once upon a time there was", config)

    test_a_cancelled_batch_costs_no_further_step = (
        Cancelling.test_a_cancelled_batch_costs_no_further_step
    )
