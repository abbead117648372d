"""predict, classify and regress over HTTP."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from core.request import InferenceRequest
from core.response import Reply
from frontend_tfserving.classes import classes_of, values_of
from frontend_tfserving.prediction import received, send
from frontend_tfserving.rest import document
from frontend_tfserving.rest.body import unpacked
from frontend_tfserving.rest.values import BYTES_PER_VALUE, write_json
from frontend_tfserving.signatures import checked_signature, explainer_of, version_of
from frontends.http.background import LARGE_BYTES, begin, turn
from frontends.http.message import JSON_HEADERS, HttpRequest, HttpResponse
from frontends.http.native.json_value import count_values
from frontends.http.services.traced import submit, traced

if TYPE_CHECKING:
    from core.config import Signature
    from core.server import InferenceServer
    from core.tensor import Buffer, Tensor

Outputs = Mapping[str, "Tensor"]
Read = Callable[[Mapping[str, Any], "Signature"], document.Asked]
Write = Callable[["Signature", Outputs, document.Asked], Mapping[str, Any]]


async def predict_service(server: InferenceServer, call: HttpRequest) -> HttpResponse:
    """Return the outputs of a model: in rows for instances, in columns for inputs."""

    def write(signature: Signature, outputs: Outputs, asked: document.Asked) -> Mapping[str, Any]:
        if asked.in_rows:
            return document.predictions(outputs, asked.examples)
        return document.columns(outputs)

    return await _answer(server, call, document.read_predict, write)


async def explain_service(server: InferenceServer, call: HttpRequest) -> HttpResponse:
    """Return the outputs of the model that a model's parameter `explainer` names, as KServe has it."""

    def write(signature: Signature, outputs: Outputs, asked: document.Asked) -> Mapping[str, Any]:
        if asked.in_rows:
            return {"explanations": document.predictions(outputs, asked.examples)["predictions"]}
        return {"explanations": document.columns(outputs)["outputs"]}

    model = explainer_of(server, call.model)
    return await _answer(server, call, document.read_predict, write, model)


async def classify_service(server: InferenceServer, call: HttpRequest) -> HttpResponse:
    """Return label and score of each class, for each example."""

    def write(signature: Signature, outputs: Outputs, asked: document.Asked) -> Mapping[str, Any]:
        return {"results": classes_of(signature, outputs)}

    return await _answer(server, call, document.read_examples, write)


async def regress_service(server: InferenceServer, call: HttpRequest) -> HttpResponse:
    """Return one value for each example."""

    def write(signature: Signature, outputs: Outputs, asked: document.Asked) -> Mapping[str, Any]:
        return {"results": values_of(signature, outputs)}

    return await _answer(server, call, document.read_examples, write)


async def _answer(
    server: InferenceServer, call: HttpRequest, read: Read, write: Write, model: str = ""
) -> HttpResponse:
    """Return the answer of a model: by default, of the one in the path."""
    model = model or call.model
    version = version_of(server, model, call.version, call.captures.get("label") or "")
    body = await unpacked(server, call)
    _hold(call, body)
    members = await _away(len(body), lambda: document.members_of(body))
    name = document.signature_name(members)
    signature, version = checked_signature(server, model, version, name)
    size = max(len(body), document.context_bytes(members))
    asked = await _away(size, lambda: read(members, signature))
    id = call.headers.get("X-Request-Id", "")

    def sent(request: InferenceRequest) -> Reply:
        request.id = id
        call.asked = call.asked or request
        return submit(server, call, request)

    replies = send(sent, signature, asked.inputs, version=version)

    async def response() -> HttpResponse:
        outputs, _ = await received(signature, replies, asked.vectors)
        size = sum(tensor.byte_size for tensor in outputs.values())

        def text() -> bytes:
            return write_json(write(signature, outputs, asked))

        written = await begin(text) if size > LARGE_BYTES else text()
        return HttpResponse(200, JSON_HEADERS, written)

    return await traced(replies[0], response())


def _hold(call: HttpRequest, body: Buffer) -> None:
    """Count the memory of a large body's values in the connection's share. Raises MemoryExhausted."""
    if len(body) > LARGE_BYTES:
        call.share.take_large(BYTES_PER_VALUE * count_values(body), "the values of a request")


async def _away(size: int, work: Callable[[], Any]) -> Any:
    """Return work(), which is done on another thread for `size` bytes if these are many."""
    if size < LARGE_BYTES:
        return work()
    async with turn():
        return await begin(work)
