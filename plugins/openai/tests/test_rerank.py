"""/v1/rerank over engines of the tasks rank and embed."""

import numpy as np
import pytest

RERANK = "/v1/rerank"
BODY = {"model": "scores", "query": "a b", "documents": ["x", "a b", {"text": "a y"}]}


@pytest.fixture
def scorer(letters, connect):
    return connect(letters[1])


def test_the_most_relevant_comes_first(scorer):
    status, found = scorer.ask(RERANK, BODY)

    assert (status, found["model"]) == (200, "scores")
    assert [each["index"] for each in found["results"]] == [1, 2, 0]
    scores = [each["relevance_score"] for each in found["results"]]
    assert scores == sorted(scores, reverse=True) and scores[0] > scores[-1]
    assert "document" not in found["results"][0]
    assert found["usage"]["total_tokens"] == 10


def test_top_n_and_the_documents(scorer):
    _, found = scorer.ask(RERANK, {**BODY, "top_n": 2, "return_documents": True})

    texts = [each["document"]["text"] for each in found["results"]]
    assert texts == ["a b", "a y"]


def test_a_model_of_embeddings_ranks_by_their_cosines(scorer):
    texts = ["a b", "b a", "qqq", {"text": "a c"}]
    body = {"model": "vectors", "query": "a b", "documents": texts, "return_documents": True}
    _, embedded = scorer.ask("/v1/embeddings", {"model": "vectors", "input": ["a b", "a c"]})
    vectors = [np.array(each["embedding"]) for each in embedded["data"]]

    status, found = scorer.ask(RERANK, body)

    assert (status, found["model"]) == (200, "vectors")
    assert [each["index"] for each in found["results"]] == [0, 1, 3, 2]
    scores = {each["index"]: each["relevance_score"] for each in found["results"]}
    assert scores[0] == pytest.approx(1) == scores[1]
    assert scores[3] == pytest.approx(vectors[0] @ vectors[1], abs=1e-6)
    assert found["usage"]["total_tokens"] == 4 + 4 + 4 + 4 + 4


@pytest.mark.parametrize(
    ("change", "param"),
    [
        ({"model": "letters"}, "model"),
        ({"query": None}, "query"),
        ({"documents": []}, "documents"),
        ({"documents": ["x", 1]}, "documents[1]"),
        ({"documents": [{"text": "x", "title": "y"}]}, "documents[0].title"),
        ({"top_n": 0}, "top_n"),
        ({"max_tokens_per_doc": 5}, "max_tokens_per_doc"),
    ],
)
def test_a_wrong_field_is_named(scorer, change, param):
    status, found = scorer.ask(RERANK, {**BODY, **change})

    assert (status, found["error"]["param"]) == (400, param)


def test_an_unknown_model(scorer):
    status, found = scorer.ask(RERANK, {**BODY, "model": "nothing"})

    assert (status, found["error"]["code"]) == (404, "model_not_found")


def test_it_is_described(scorer):
    assert RERANK in scorer.ask("/openapi.json")[1]["paths"]
