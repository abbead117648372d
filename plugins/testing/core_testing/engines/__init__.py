"""The contract of engines (core_generate.engine) as tests. An author inherits them and provides a model:

    import pytest
    from core_testing.engines import EngineConformance, EngineExample
    from backend_hello import backend

    class TestHello(EngineConformance):
        @pytest.fixture
        def engine_example(self, tmp_path):
            return EngineExample(backend, tmp_path, "Once upon a time")

Tests of what the engine does not support are skipped, with the missing word of `Engine.supports`.
EmbeddingConformance and RankConformance are for models of the tasks "embed" and "rank".
"""

from core_testing.engines.cancelling import Cancelling
from core_testing.engines.choosing import Choosing
from core_testing.engines.clients import Clients
from core_testing.engines.ending import Ending
from core_testing.engines.kit import EngineExample, Generating, loaded
from core_testing.engines.order import Order
from core_testing.engines.texts import EmbeddingConformance, RankConformance

__all__ = [
    "EmbeddingConformance",
    "EngineConformance",
    "EngineExample",
    "Generating",
    "RankConformance",
    "loaded",
]


class EngineConformance(Order, Ending, Choosing, Cancelling, Clients):
    """The contract of an engine. Subclass it and define the fixture `engine_example`."""
