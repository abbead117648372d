"""POST /v1/rerank: documents in the order of their relevance to a query, by engines of the task "rank".

query, documents ─► one request ─► scores ─► results, the most relevant first
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
from frontend_openai.errors import wrong
from frontend_openai.events import Usage
from frontend_openai.models import name_of_task
from frontend_openai.service import json_response
from frontends.http.message import HttpRequest, HttpResponse
from frontends.http.services.traced import submit

if TYPE_CHECKING:
    from core.server import InferenceServer

MOST_DOCUMENTS = 2048


async def rerank(server: InferenceServer, call: HttpRequest) -> HttpResponse:
    """Score how relevant documents are to a query."""
    document = read_document(call.body)
    name = name_of_task(server, document, "rank", "ranks no documents")
    call.captures = {"model": name, "version": None}
    query = document.text("query")
    if query is None:
        raise wrong("query", "expected a string, found nothing")
    texts = _read_documents(document)
    most = document.integer("top_n", 1, MOST_DOCUMENTS)
    returns = document.flag("return_documents") or False
    document.ignore(("user",))
    document.end()
    request = InferenceRequest(name, {"query": _tensor("query", [query])})
    request.inputs["documents"] = _tensor("documents", texts)
    request.id = call.headers.get("X-Request-Id", "")
    call.asked = request
    response = await submit(server, call, request)
    scores = response.output("scores").array
    if scores.shape != (len(texts),):
        raise internal(f"output 'scores' has the shape {list(scores.shape)} for {len(texts)} texts")
    order = np.argsort(-scores, kind="stable")[:most]
    tokens = int(response.output("num_input_tokens").array.sum())
    call.usage = Usage(1, tokens)
    results = [_result(int(at), float(scores[at]), texts, returns) for at in order]
    return json_response(
        {
            "id": f"rerank-{secrets.token_hex(16)}",
            "object": "list",
            "model": name,
            "results": results,
            "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
        }
    )


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


def _tensor(name: str, texts: list[str]) -> Tensor:
    data = np.array([each.encode() for each in texts], object)
    return Tensor(name, BYTES, (len(texts),), array=data)


def _result(at: int, score: float, texts: list[str], returns: bool) -> dict[str, Any]:
    found: dict[str, Any] = {"index": at, "relevance_score": score}
    return {**found, "document": {"text": texts[at]}} if returns else found
