"""Asks an engine for the tokens of a text, or the text of tokens.

An engine in this process tokenizes at once; another one by a request with the parameter `task`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from core_generate.tokenizing import Tokenizer, tokenizer_of

from core.dtypes import BYTES, INT32
from core.errors import DeadlineExceeded, invalid
from core.request import InferenceRequest
from core.tensor import Tensor
from frontend_openai.adapter import TEXT, TOKENS
from frontend_openai.engine_info import EngineInfo
from frontends.http.message import HttpRequest
from frontends.http.services.traced import submit

if TYPE_CHECKING:
    from core.response import InferenceResponse
    from core.server import InferenceServer

Result = TypeVar("Result")


def check_engine(name: str, info: EngineInfo) -> None:
    """Raise CoreError(INVALID) for a model without an engine: it cannot tokenize."""
    if not info.is_engine:
        raise invalid(
            f"model '{name}' does not count tokens: expected a model of an engine, whose parameter `engine` "
            "is in its configuration"
        )


async def tokenized(
    server: InferenceServer, call: HttpRequest, model: str, text: str, special: bool = True
) -> Any:
    """Return the tokens of a text, INT32[tokens]. With `special`, they include those around a prompt.

    Raises the CoreError of the model, and DeadlineExceeded at the client's timeout.
    """
    if (tokenizer := _tokenizer(server, call, model)) is not None:
        return await _timely(call.deadline_ns, tokenizer.tokenize(text, special))
    tensor = Tensor(TEXT, BYTES, (1,), array=np.array([text.encode()], object))
    request = InferenceRequest(model, {TEXT: tensor})
    request.parameters |= {"task": "tokenize", "special": special}
    response = await _response(server, call, request)
    return np.ascontiguousarray(response.output("token_ids").array)


async def detokenized(
    server: InferenceServer, call: HttpRequest, model: str, tokens: Sequence[int]
) -> str:
    """Return the text of tokens. Raises CoreError as `tokenized`."""
    if (tokenizer := _tokenizer(server, call, model)) is not None:
        return await _timely(call.deadline_ns, tokenizer.detokenize(tokens))
    tensor = Tensor(TOKENS, INT32, (len(tokens),), array=np.array(tokens, np.int32))
    request = InferenceRequest(model, {TOKENS: tensor})
    request.parameters["task"] = "detokenize"
    response = await _response(server, call, request)
    data: bytes = response.output("text_output").array.item(0)
    return data.decode("utf-8", "replace")


def _tokenizer(server: InferenceServer, call: HttpRequest, model: str) -> Tokenizer | None:
    """Return the tokenizer of a model's newest version, if its engine is in this process.

    Raises the CoreError of a model that does not serve, and Exhausted for a caller without tokens.
    """
    version = server.models.signature(model).version
    if (found := tokenizer_of(model, version)) is None:
        return None
    if call.meter is not None:
        call.meter.check()
    if call.asked is None:  # the access log reads the model and the id of the request from it
        call.asked = InferenceRequest(model, {}, model_version=version)
        call.asked.id = call.headers.get("X-Request-Id", "")
    return found


async def _timely(deadline_ns: int, answer: Awaitable[Result]) -> Result:
    """Return what `answer` returns. At the deadline, cancel it and raise DeadlineExceeded; 0 for none."""
    if not deadline_ns:
        return await answer
    try:
        return await asyncio.wait_for(answer, (deadline_ns - time.monotonic_ns()) / 1e9)
    except asyncio.TimeoutError:
        raise DeadlineExceeded from None


async def _response(
    server: InferenceServer, call: HttpRequest, request: InferenceRequest
) -> InferenceResponse:
    request.id = call.headers.get("X-Request-Id", "")
    call.asked = request
    return await submit(server, call, request)
