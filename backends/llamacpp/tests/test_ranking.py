"""Scores of documents by LlamaEngine, with a tiny BERT: lengths of pairs, and templates for them."""

import numpy as np
import pytest
from gguf_files import POOLING_RANK, encoder

from core.errors import CoreError, Kind

CONTEXT = 32
TEMPLATE = "[CLS] small {query} town {document} [SEP]"
QUERY, DOCUMENTS = "two rivers", ["a town", "small town between two rivers", "unknown words only"]


@pytest.fixture(scope="module", params=["", TEMPLATE], ids=["plain", "template"])
def engine(request, tmp_path_factory):
    pytest.importorskip("xllamacpp", reason="llama.cpp runs the models")
    from backend_llamacpp.engine import LlamaEngine
    from backend_llamacpp.settings import settings_of
    from core_generate.gguf import read_metadata

    from core.config import ModelConfig

    folder = tmp_path_factory.mktemp("rank")
    (folder / "model.gguf").write_bytes(
        encoder(POOLING_RANK, context=CONTEXT, template=request.param)
    )
    config = ModelConfig(name="m")
    config.parameters["threads"].string_value = "1"
    settings = settings_of(config, folder, read_metadata(folder / "model.gguf"))
    assert settings.task == "rank" and settings.rank_template == request.param
    engine = LlamaEngine(folder / "model.gguf", settings)
    yield engine
    engine.close()


def test_documents_with_more_known_words_have_higher_scores(engine):
    scores, _ = engine.rank(QUERY, DOCUMENTS)

    assert scores.dtype == np.float32 and scores.shape == (3,)
    assert scores[1] > scores[2] and scores[0] > scores[2]
    assert scores[1] > 1  # the classifier's number, not a probability


def test_tokens_of_all_pairs_are_counted(engine):
    each = [engine.rank(QUERY, [document])[1] for document in DOCUMENTS]

    assert engine.rank(QUERY, DOCUMENTS)[1] == sum(each)
    assert each[1] - each[0] == 3  # words


def test_a_pair_longer_than_the_context_is_refused_with_both_numbers(engine):
    around = engine.rank("town", ["town"])[1] - 2
    room = CONTEXT - around - 1

    assert engine.rank("town", ["town " * room])[1] == CONTEXT
    expected = rf"query and document 1 have {CONTEXT + 3} tokens together.* {CONTEXT} tokens"
    with pytest.raises(CoreError, match=expected) as refused:
        engine.rank("town", ["town", "town " * (room + 3)])
    with pytest.raises(CoreError, match=r"query and document 0 have"):
        engine.rank("town " * CONTEXT, ["town"])

    assert refused.value.kind is Kind.INVALID
    assert engine.rank("town", ["town"])[1] == around + 2


def test_long_words_of_few_tokens_are_not_refused(engine):
    # More bytes than the context has tokens.
    scores, _ = engine.rank("between " * 4, ["rivers " * 8])

    assert np.isfinite(scores).all()
