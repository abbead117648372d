"""Mistakes of embeddings and scores."""

import numpy as np
from core_testing.engines import EmbeddingConformance, RankConformance

from broken_engines.contract import Changed, caught_by


@caught_by(
    "test_each_text_has_its_row_and_its_tokens",
    "test_requests_at_once_get_their_own_embeddings",
    task="embed",
    contract=EmbeddingConformance,
)
class TestAddsThePlace(Changed):
    turn = 0

    def embed(self, prompts):
        self.turn += 1
        found, counts = super().embed(prompts)
        return found + np.arange(len(prompts))[:, None] + self.turn, counts


@caught_by(
    "test_different_texts_have_different_embeddings", task="embed", contract=EmbeddingConformance
)
class TestAllTheSame(Changed):
    def embed(self, prompts):
        found, counts = super().embed(prompts)
        return found * 0, counts


@caught_by(
    "test_each_document_has_a_score_and_the_query_itself_the_best",
    "test_the_order_of_the_documents_does_not_matter",
    task="rank",
    contract=RankConformance,
)
class TestFirstIsBest(Changed):
    def rank(self, query, documents):
        found, count = super().rank(query, documents)
        return np.arange(len(found))[::-1], count
