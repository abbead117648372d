"""POST /v1/embeddings: a vector for each text, by engines of the task "embed" and by encoders.

input ─► one request with all texts, or one for each list of tokens ─► rows ─► JSON
      ─► Encoder ───────────────────────────────────────────────────────┘
"""

from __future__ import annotations

import asyncio
import base64
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson

from core.dtypes import BYTES, INT32
from core.errors import internal
from core.request import InferenceRequest
from core.tensor import Tensor
from frontend_openai.adapter import TOKENS
from frontend_openai.document import Document, read_document
from frontend_openai.embedding_models import EmbeddingModels, embedded
from frontend_openai.errors import wrong
from frontend_openai.models import known_model, task_of
from frontend_openai.off_loop import off_loop
from frontend_openai.sampling import is_tokens
from frontends.http.message import JSON_HEADERS, HttpRequest, HttpResponse
from frontends.http.services.traced import submit

if TYPE_CHECKING:
    from core.response import InferenceResponse
    from core.server import InferenceServer

MOST_INPUTS = 2048  # as OpenAI
_EMBED = "embed"


async def embeddings(server: InferenceServer, call: HttpRequest) -> HttpResponse:
    """Compute the embeddings of texts or lists of tokens."""
    document = await read_document(call.body)
    name = known_model(server, document)
    call.captures = {"model": name, "version": None}
    encoder = await EmbeddingModels.of(server).encoder(name)
    if encoder is None:
        task_of(server, name, (_EMBED,), "computes no embeddings")
    inputs = await off_loop(len(call.body), _read_inputs, document)
    form = document.text("encoding_format") or "float"
    if form not in ("float", "base64"):
        raise wrong("encoding_format", f"expected float or base64, found {form[:50]}")
    if document.take("dimensions") is not None:
        raise wrong("dimensions", f"model '{name}' does not support this", "unsupported")
    document.ignore(("user",))
    document.end()
    if encoder is not None:
        rows, tokens = await embedded(server, call, encoder, inputs, "input[{}]".format)
    else:
        requests = await off_loop(len(call.body), _requests, inputs, name)
        call.asked = requests[0]
        responses = await _responses(server, call, requests)
        rows = np.concatenate([embedding_rows(each) for each in responses])
        tokens = sum(int(each.output("num_input_tokens").array.sum()) for each in responses)
    data = await off_loop(rows.nbytes, _document, rows, form, name, tokens)
    return HttpResponse(200, JSON_HEADERS, data)


def _read_inputs(document: Document) -> list[Any]:
    """Return the texts, or the lists of tokens."""
    found = document.take("input")
    if type(found) is str or (found and is_tokens(found)):
        found = [found]
    if type(found) is not list or not 0 < len(found) <= MOST_INPUTS:
        raise wrong(
            "input",
            f"expected a string, a list of tokens, or a list of 1 to {MOST_INPUTS} of these",
        )
    if not all(type(each) is str for each in found):
        for number, each in enumerate(found):
            if not (each and is_tokens(each)):
                raise wrong(
                    f"input[{number}]", "expected a list of tokens, as the others or the first"
                )
    return found


def _requests(inputs: list[Any], name: str) -> list[InferenceRequest]:
    """Return the requests to an engine: one for all texts, or one for each list of tokens."""
    if type(inputs[0]) is str:
        texts = np.array([each.encode() for each in inputs], object)
        tensor = Tensor("text_input", BYTES, (len(inputs),), array=texts)
        return [InferenceRequest(name, {tensor.name: tensor})]
    return [
        InferenceRequest(
            name, {TOKENS: Tensor(TOKENS, INT32, (len(each),), array=np.array(each, np.int32))}
        )
        for each in inputs
    ]


async def _responses(
    server: InferenceServer, call: HttpRequest, requests: list[InferenceRequest]
) -> list[InferenceResponse]:
    """Return the responses in the order of the requests; an error of one cancels the others."""

    async def one(request: InferenceRequest) -> InferenceResponse:
        return await submit(server, call, request)

    tasks = [asyncio.ensure_future(one(request)) for request in requests]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()


def embedding_rows(response: InferenceResponse) -> Any:
    """Return the embeddings of a response, FP32[texts, numbers]. Raises CoreError(INTERNAL) for others."""
    rows = response.output("embedding").array
    if rows.ndim != 2 or rows.dtype != np.float32:
        raise internal(f"output 'embedding' has the shape {list(rows.shape)}; expected FP32[-1,-1]")
    return rows


def _document(rows: Any, form: str, name: str, tokens: int) -> bytes:
    """Return the response as JSON. Row by row: orjson holds the GIL while it writes."""
    data = b",".join(
        orjson.dumps(
            {"object": "embedding", "index": index, "embedding": _written(row, form)},
            option=orjson.OPT_SERIALIZE_NUMPY,
        )
        for index, row in enumerate(rows)
    )
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    rest = orjson.dumps({"model": name, "usage": usage})
    return b'{"object":"list","data":[%b],%b' % (data, rest[1:])


def _written(row: Any, form: str) -> Any:
    if form == "float":
        return np.ascontiguousarray(row)
    return base64.b64encode(np.ascontiguousarray(row, "<f4").tobytes()).decode()
