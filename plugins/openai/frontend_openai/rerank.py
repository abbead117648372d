"""POST /v1/rerank: documents in the order of their relevance to a query.

query, documents ─► one request ─► scores, or embeddings and their cosines ─► results, the most relevant first
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Any

import numpy as np

from core.dtypes import BYTES
from core.errors import internal
from core.request import InferenceRequest
from core.tensor import Tensor
from frontend_openai.document import Document, read_document
from frontend_openai.embedding_models import EmbeddingModels, embedded
from frontend_openai.embeddings import embedding_rows
from frontend_openai.errors import wrong
from frontend_openai.models import known_model, task_of
from frontend_openai.off_loop import off_loop
from frontend_openai.service import json_response
from frontends.http.message import HttpRequest, HttpResponse
from frontends.http.services.traced import submit

if TYPE_CHECKING:
    from core.server import InferenceServer

MOST_DOCUMENTS = 2048


async def rerank(server: InferenceServer, call: HttpRequest) -> HttpResponse:
    """Score how relevant documents are to a query."""
    document = await read_document(call.body)
    name = known_model(server, document)
    call.captures = {"model": name, "version": None}
    encoder = await EmbeddingModels.of(server).encoder(name)
    task = "" if encoder else task_of(server, name, ("rank", "embed"), "ranks no documents")
    query = document.text("query")
    if query is None:
        raise wrong("query", "expected a string, found nothing")
    texts = await off_loop(len(call.body), _read_documents, document)
    most = document.integer("top_n", 1, MOST_DOCUMENTS)
    returns = document.flag("return_documents") or False
    document.ignore(("user",))
    document.end()
    if encoder is not None:
        rows, tokens = await embedded(server, call, encoder, [query, *texts], _field_of)
        scores = await off_loop(rows.nbytes, _cosines, rows)
    else:
        embeds = task == "embed"
        new_request = _embedding if embeds else _ranking
        request = await off_loop(len(call.body), new_request, name, query, texts)
        request.id = call.headers.get("X-Request-Id", "")
        call.asked = request
        response = await submit(server, call, request)
        if embeds:
            rows = embedding_rows(response)
            scores = await off_loop(rows.nbytes, _cosines, rows)
        else:
            scores = response.output("scores").array
        tokens = int(response.output("num_input_tokens").array.sum())
    if scores.shape != (len(texts),):
        raise internal(f"model '{name}' has {list(scores.shape)} scores for {len(texts)} texts")
    order = np.argsort(-scores, kind="stable")[:most]
    results = [_result(int(at), float(scores[at]), texts, returns) for at in order]
    found = {
        "id": f"rerank-{secrets.token_hex(16)}",
        "object": "list",
        "model": name,
        "results": results,
        "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
    }
    return await off_loop(len(call.body) if returns else 0, json_response, found)


def _field_of(number: int) -> str:
    """Return the field with a text, of the query and the documents behind it."""
    return f"documents[{number - 1}]" if number else "query"


def _read_documents(document: Document) -> list[str]:
    """Return the texts of the documents: each is a string, or an object with a member `text`."""
    found = document.take("documents")
    if type(found) is not list or not 0 < len(found) <= MOST_DOCUMENTS:
        raise wrong("documents", f"expected a list of 1 to {MOST_DOCUMENTS} documents")
    texts = []
    for at, each in enumerate(found):
        path = f"documents[{at}]"
        if type(each) is dict:
            inner = Document(each, f"{path}.")
            each = inner.text("text")
            inner.end()
        if type(each) is not str:
            raise wrong(path, "expected a string, or an object with a string `text`")
        texts.append(each)
    return texts


def _ranking(name: str, query: str, texts: list[str]) -> InferenceRequest:
    inputs = (_tensor("query", [query]), _tensor("documents", texts))
    return InferenceRequest(name, {each.name: each for each in inputs})


def _embedding(name: str, query: str, texts: list[str]) -> InferenceRequest:
    tensor = _tensor("text_input", [query, *texts])
    return InferenceRequest(name, {tensor.name: tensor})


def _cosines(rows: Any) -> Any:
    """Return the cosine of the angle between the first embedding and each other one, FP32[embeddings - 1]."""
    lengths = np.linalg.norm(rows, axis=1)
    return (rows[1:] @ rows[0]) / np.maximum(lengths[1:] * lengths[0], np.float32(1e-12))


def _tensor(name: str, texts: list[str]) -> Tensor:
    data = np.array([each.encode() for each in texts], object)
    return Tensor(name, BYTES, (len(texts),), array=data)


def _result(at: int, score: float, texts: list[str], returns: bool) -> dict[str, Any]:
    found: dict[str, Any] = {"index": at, "relevance_score": score}
    return {**found, "document": {"text": texts[at]}} if returns else found
