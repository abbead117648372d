"""Asks an engine for the tokens of a text, or the text of tokens, by the request parameter `task`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from core.dtypes import BYTES, INT32
from core.errors import invalid
from core.request import InferenceRequest
from core.tensor import Tensor
from frontend_openai.adapter import TEXT, TOKENS
from frontend_openai.engine_info import EngineInfo
from frontends.http.message import HttpRequest
from frontends.http.services.traced import submit

if TYPE_CHECKING:
    from core.response import InferenceResponse
    from core.server import InferenceServer


def check_engine(name: str, info: EngineInfo) -> None:
    """Raise CoreError(INVALID) for a model without an engine: it cannot tokenize."""
    if not info.is_engine:
        raise invalid(
            f"model '{name}' does not count tokens: expected a model of an engine, whose parameter `engine` "
            "is in its configuration"
        )


async def tokenized(
    server: InferenceServer, call: HttpRequest, model: str, text: str, special: bool = True
) -> list[int]:
    """Return the tokens of a text. With `special`, they include those that begin and end a prompt.

    Raises the CoreError of the model.
    """
    tensor = Tensor(TEXT, BYTES, (1,), array=np.array([text.encode()], object))
    request = InferenceRequest(model, {TEXT: tensor})
    request.parameters |= {"task": "tokenize", "special": special}
    response = await _response(server, call, request)
    return [int(each) for each in response.output("token_ids").array]


async def detokenized(
    server: InferenceServer, call: HttpRequest, model: str, tokens: Sequence[int]
) -> str:
    """Return the text of tokens. Raises the CoreError of the model."""
    tensor = Tensor(TOKENS, INT32, (len(tokens),), array=np.array(tokens, np.int32))
    request = InferenceRequest(model, {TOKENS: tensor})
    request.parameters["task"] = "detokenize"
    response = await _response(server, call, request)
    data: bytes = response.output("text_output").array.item(0)
    return data.decode("utf-8", "replace")


async def _response(
    server: InferenceServer, call: HttpRequest, request: InferenceRequest
) -> InferenceResponse:
    request.id = call.headers.get("X-Request-Id", "")
    call.asked = request
    return await submit(server, call, request)
