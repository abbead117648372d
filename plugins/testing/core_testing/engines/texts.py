"""EmbeddingConformance and RankConformance: engines that compute vectors or scores of texts."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from core_generate import Prompt

from core.errors import CoreError
from core_testing.engines.kit import EngineKit, Generating
from core_testing.example import Arrays


class EmbeddingConformance(EngineKit):
    """The contract of an engine of the task "embed". Define the fixture `engine_example`.

    tolerance   absolute tolerance between the vectors of a text alone and beside other texts
    """

    tolerance: ClassVar[float] = 1e-3

    def test_each_text_has_its_row_and_its_tokens(self, generating: Generating) -> None:
        texts = _texts(generating.prompt)

        found, counts = generating.engine.embed([Prompt(each) for each in texts])

        rows = np.asarray(found)
        assert rows.ndim == 2 and len(rows) == len(texts) == len(counts)
        assert np.isfinite(rows).all()
        assert all(count > 0 for count in counts)
        for text, row, count in zip(texts, rows, counts, strict=True):
            alone, tokens = generating.engine.embed([Prompt(text)])
            np.testing.assert_allclose(row, np.asarray(alone)[0], atol=self.tolerance)
            assert tokens == [count]

    def test_different_texts_have_different_embeddings(self, generating: Generating) -> None:
        found, _ = generating.engine.embed([Prompt(each) for each in _texts(generating.prompt)])

        rows = np.asarray(found)
        assert not np.allclose(rows[0], rows[1], atol=self.tolerance)

    def test_requests_at_once_get_their_own_embeddings(self, generating: Generating) -> None:
        texts = _texts(generating.prompt)
        expected, counts = generating.engine.embed([Prompt(each) for each in texts])

        answers = generating.served.together([_words(text_input=[each]) for each in texts])

        for answer, row, count in zip(answers, np.asarray(expected), counts, strict=True):
            assert not isinstance(answer, CoreError), answer
            np.testing.assert_allclose(answer["embedding"][0], row, atol=self.tolerance)
            assert answer["num_input_tokens"].tolist() == [count]


class RankConformance(EngineKit):
    """The contract of an engine of the task "rank". The prompt of the example is a query."""

    def test_each_document_has_a_score_and_the_query_itself_the_best(
        self, generating: Generating
    ) -> None:
        documents = ["0 1 2 3", generating.prompt, "- - -"]

        found, count = generating.engine.rank(generating.prompt, documents)

        scores = np.asarray(found)
        assert scores.shape == (3,) and np.isfinite(scores).all()
        assert int(scores.argmax()) == 1
        assert count > 0

    def test_the_order_of_the_documents_does_not_matter(self, generating: Generating) -> None:
        documents = [*_texts(generating.prompt), "0 1 2 3"]

        forth = generating.served.ask(_words(query=[generating.prompt], documents=documents))
        back = generating.served.ask(_words(query=[generating.prompt], documents=documents[::-1]))

        np.testing.assert_allclose(forth["scores"], back["scores"][::-1], atol=1e-3)


def _texts(prompt: str) -> list[str]:
    words = prompt.split()
    return [prompt, f"{prompt} {prompt} and more", " ".join(reversed(words)) + " xyz"]


def _words(**texts: list[str]) -> Arrays:
    return {
        name: np.array([each.encode() for each in values], object) for name, values in texts.items()
    }
