"""Embeddings and ranks by the package openai, sync and async, with every engine that has the task."""

import asyncio

import numpy as np
import pytest

from . import served_encoders
from .served_encoders import QUERY, VECTORS

openai = pytest.importorskip("openai")

OTHER = "every evening a bell rang"
DOCUMENTS = ["0 1 2 3", QUERY, OTHER]


@pytest.fixture(scope="module", params=served_encoders.KINDS)
def encoders(request, tmp_path_factory):
    """A server with the models of each engine. Engines load slowly: each is loaded once for all tests."""
    with served_encoders.serve(request.param, tmp_path_factory.mktemp("models")) as found:
        yield found


def rows_of(answer):
    assert [each.index for each in answer.data] == list(range(len(answer.data)))
    return np.array([each.embedding for each in answer.data])


def cosine(first, second):
    return first @ second / np.linalg.norm(first) / np.linalg.norm(second)


def test_texts_become_embeddings(encoders):
    # The package asks for base64 unless it is told another form.
    found = encoders.openai.embeddings.create(model=VECTORS, input=[QUERY, OTHER, QUERY])
    (one,) = rows_of(
        encoders.openai.embeddings.create(model=VECTORS, input=QUERY, encoding_format="float")
    )

    same, other, again = rows_of(found)
    assert len(one) > 1 and one.any()
    assert cosine(same, one) == pytest.approx(1, abs=1e-3)
    assert cosine(same, again) == pytest.approx(1, abs=1e-3)
    assert cosine(same, other) < 0.999
    assert found.usage.prompt_tokens == found.usage.total_tokens > 3


async def test_the_async_client_gets_the_same_embeddings(encoders):
    expected = rows_of(encoders.openai.embeddings.create(model=VECTORS, input=DOCUMENTS))
    async with openai.AsyncOpenAI(**encoders.base) as client:

        async def one(text):
            return rows_of(await client.embeddings.create(model=VECTORS, input=text))[0]

        found = await asyncio.wait_for(asyncio.gather(*map(one, DOCUMENTS)), 60)

    assert [cosine(*each) for each in zip(found, expected, strict=True)] == pytest.approx(
        [1, 1, 1], abs=1e-3
    )


async def test_documents_are_ranked(encoders):
    async with openai.AsyncOpenAI(**encoders.base) as client:
        for name in encoders.names:
            body = {"model": name, "query": QUERY, "documents": DOCUMENTS, "top_n": 2}

            found = encoders.openai.post("/rerank", body=body, cast_to=object)
            again = await client.post("/rerank", body=body, cast_to=object)

            first, second = found["results"]
            assert first["index"] == 1 and first["relevance_score"] > second["relevance_score"]
            if name == VECTORS:
                assert first["relevance_score"] == pytest.approx(1, abs=1e-3)
            assert [each["index"] for each in again["results"]] == [1, second["index"]]
            assert found["usage"]["total_tokens"] > 3
