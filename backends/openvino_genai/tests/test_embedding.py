"""EmbeddingEngine with the layers of the real, small model."""

import numpy as np
import pytest
from backend_openvino_genai import backend
from core_generate import Prompt
from core_testing.engines import EmbeddingConformance, EngineExample

from core.config import ModelConfig
from core.errors import CoreError, Kind


@pytest.fixture(scope="module")
def embedding_folder(folder, tmp_path_factory):
    from embedding_model import write_embedding_model

    made = tmp_path_factory.mktemp("embedding")
    write_embedding_model(folder, made)
    return made


class TestEmbedding(EmbeddingConformance):
    @pytest.fixture
    def engine_example(self, embedding_folder):
        config = """
backend: "openvino_genai"
parameters { key: "pooling" value { string_value: "mean" } }
parameters { key: "threads" value { string_value: "1" } }
"""
        return EngineExample(backend, embedding_folder, "The cat sleeps on the sofa", config)


@pytest.fixture(scope="module")
def engine(embedding_folder):
    from backend_openvino_genai.embedding import EmbeddingEngine
    from backend_openvino_genai.settings import Settings

    return EmbeddingEngine(embedding_folder, Settings(context=128, threads=1, pooling="mean"))


def test_embeddings_have_length_1_and_know_what_is_alike(engine):
    texts = ["The cat sleeps.", "A cat is sleeping.", "Stocks fell by four percent."]

    found, tokens = engine.embed([Prompt(text=each) for each in texts])

    assert found.shape == (3, 576) and found.dtype == np.float32
    assert np.allclose(np.linalg.norm(found, axis=1), 1, atol=1e-3)
    assert found[0] @ found[1] > found[0] @ found[2]
    assert tokens == [len(engine.tokenize(each)) for each in texts]


def test_a_text_longer_than_the_context_is_refused_with_both_numbers(engine):
    with pytest.raises(CoreError, match=r"the text has 200 tokens.* 128 tokens") as caught:
        engine.embed([Prompt(text="cat" + " cat" * 199)])

    assert caught.value.kind is Kind.INVALID


def test_tokens_are_refused(engine):
    with pytest.raises(CoreError, match="'prompt_token_ids' is not supported"):
        engine.embed([Prompt(tokens=[1, 2])])


def test_a_gguf_file_is_refused(smollm2, tmp_path):
    (tmp_path / "model.gguf").symlink_to(smollm2)
    config = ModelConfig(name="m")
    config.parameters["task"].string_value = "embed"

    with pytest.raises(CoreError, match="embeddings with folders only"):
        backend.complete(config, tmp_path, backend)
