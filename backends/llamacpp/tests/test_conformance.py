"""The contract of engines."""

import pytest
from backend_llamacpp.conformance import CONFIG, backend
from backend_llamacpp.conformance import TestContract as TestContract
from core_testing.engines import EngineExample
from core_testing.engines.cancelling import Cancelling
from core_testing.engines.kit import EngineKit

SLOTS = '"slots" value { string_value: "16" }'


class TestSixteenAtOnce(EngineKit):
    @pytest.fixture
    def engine_example(self, smollm2, tmp_path):
        (tmp_path / "model.gguf").symlink_to(smollm2)
        config = CONFIG.replace('"slots" value { string_value: "4" }', SLOTS)
        assert SLOTS in config
        return EngineExample(backend, tmp_path, "Once upon a time there was", config)

    test_a_cancelled_batch_costs_no_further_step = (
        Cancelling.test_a_cancelled_batch_costs_no_further_step
    )
