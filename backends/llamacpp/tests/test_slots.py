"""Embeddings and scores do not depend on the number of slots, and llama.cpp loads with each number."""

import numpy as np
import pytest
from core_generate import Prompt
from gguf_files import POOLING_MEAN, POOLING_RANK, WORDS, encoder

pytest.importorskip("xllamacpp", reason="llama.cpp runs the models")

CONTEXT = 64
TEXTS = [" ".join(WORDS[:count]) for count in (1, 4, 2, 3, 1)]


@pytest.fixture
def loaded(tmp_path):
    """Return a function that returns an engine of a task with so many slots."""
    from backend_llamacpp.engine import LlamaEngine
    from backend_llamacpp.settings import Settings

    engines = []

    def found(task, slots):
        file = tmp_path / f"{task}.gguf"
        pooling = POOLING_MEAN if task == "embed" else POOLING_RANK
        file.write_bytes(encoder(pooling, context=CONTEXT))
        settings = Settings(task=task, context=CONTEXT, slots=slots, threads=1)
        engines.append(LlamaEngine(file, settings))
        return engines[-1]

    yield found
    for each in engines:
        each.close()


@pytest.mark.parametrize("slots", [3, 7])
def test_embeddings_do_not_depend_on_the_slots(loaded, slots):
    prompts = [Prompt(text=each) for each in TEXTS]
    one, counts = loaded("embed", 1).embed(prompts)

    several, of_several = loaded("embed", slots).embed(prompts)

    np.testing.assert_allclose(several, one, atol=1e-5)
    assert of_several == counts


@pytest.mark.parametrize("slots", [3, 7])
def test_scores_do_not_depend_on_the_slots(loaded, slots):
    one, _ = loaded("rank", 1).rank(WORDS[0], TEXTS)

    several, _ = loaded("rank", slots).rank(WORDS[0], TEXTS)

    np.testing.assert_allclose(several, one, atol=1e-4)
