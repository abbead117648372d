"""RankEngine with a small BERT, compared with TextRerankPipeline called directly and with transformers."""

import numpy as np
import pytest
from backend_openvino_genai import backend
from core_testing.engines import EngineExample, RankConformance

from core.config import ModelConfig
from core.errors import CoreError, Kind

pytest.importorskip("openvino_genai", reason="it ranks")
pytest.importorskip("transformers", reason="it makes the model")

QUERY = "who is sleeping ?"
DOCUMENTS = [
    *("the cat sleeps on the sofa .", "stocks fell by a percent .", "a dog runs .", "cat"),
    *("where is the dog ?", "percent percent percent", "the sofa runs on a cat ."),
]


@pytest.fixture(scope="module")
def ranked(tmp_path_factory):
    """Return the folder of a model, and its scores by transformers as a function."""
    from rank_model import write_rank_model

    folder = tmp_path_factory.mktemp("rank")
    return folder, write_rank_model(folder)


class TestRanks(RankConformance):
    @pytest.fixture
    def engine_example(self, ranked):
        threads = 'parameters { key: "threads" value { string_value: "1" } }'
        return EngineExample(
            backend, ranked[0], "the cat sleeps", f'backend: "openvino_genai"\n{threads}'
        )


@pytest.fixture(scope="module")
def engine(ranked):
    from backend_openvino_genai.ranking import RankEngine
    from backend_openvino_genai.settings import Settings

    return RankEngine(ranked[0], Settings(context=32, threads=1, task="rank"))


def test_the_scores_are_those_of_the_pipeline_and_of_transformers(engine, ranked):
    import openvino_genai as genai

    folder, scores = ranked
    config = genai.TextRerankPipeline.Config(top_n=len(DOCUMENTS))
    direct = genai.TextRerankPipeline(str(folder), "CPU", config)

    found, _ = engine.rank(QUERY, DOCUMENTS)

    assert found.dtype == np.float32 and found.shape == (7,)
    np.testing.assert_allclose(
        found, [score for _, score in sorted(direct.rerank(QUERY, DOCUMENTS))]
    )
    # OpenVINO may compute in 16 bits.
    np.testing.assert_allclose(found, scores(QUERY, DOCUMENTS), atol=0.05)
    assert found.max() - found.min() > 0.1


def test_tokens_of_all_pairs_are_counted(engine):
    _, tokens = engine.rank("cat", ["dog", "a dog"])

    assert tokens == (3 + 2) + (3 + 3)


def test_a_pair_longer_than_the_context_is_refused_with_both_numbers(engine):
    with pytest.raises(CoreError, match=r"document 1 have 53 tokens.* 32 tokens") as refused:
        engine.rank("cat", ["dog", "dog " * 49])

    assert refused.value.kind is Kind.INVALID


def test_the_class_of_the_model_decides_the_task(ranked):
    config = ModelConfig(name="m")

    backend.complete(config, ranked[0], backend)

    assert config.output[0].name == "scores"


def test_a_gguf_file_is_refused(smollm2, tmp_path):
    (tmp_path / "model.gguf").symlink_to(smollm2)
    config = ModelConfig(name="m")
    config.parameters["task"].string_value = "rank"

    with pytest.raises(CoreError, match="computes scores with folders only"):
        backend.complete(config, tmp_path, backend)
