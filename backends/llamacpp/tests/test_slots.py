"""Embeddings and scores do not depend on the number of slots, and llama.cpp loads with each number."""

import subprocess
import sys

import numpy as np
import pytest
from core_generate import Prompt
from core_testing.patience import PATIENCE_S
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


CLOSED_AT_ONCE = """
import sys
from pathlib import Path
from backend_llamacpp.engine import LlamaEngine
from backend_llamacpp.settings import Settings

for _ in range(20):
    LlamaEngine(Path(sys.argv[1]), Settings(task="embed", context=64, slots=1, threads=1)).close()
"""


def test_an_engine_ends_that_is_closed_as_soon_as_it_is_loaded(tmp_path):
    """In a process of its own: llama.cpp would hold Python's lock for ever."""
    file = tmp_path / "model.gguf"
    file.write_bytes(encoder(POOLING_MEAN, context=CONTEXT))

    done = subprocess.run(
        [sys.executable, "-c", CLOSED_AT_ONCE, str(file)], timeout=PATIENCE_S, capture_output=True
    )

    assert done.returncode == 0, done.stderr
