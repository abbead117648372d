"""EmbeddingModels: finds the model of a request for embeddings: an engine, or an encoder of any backend.

model ─► [EmbeddingModels.encoder] ─► Encoder;  None for an engine
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from core.config import ModelConfig
from core.request import NEWEST, InferenceRequest
from frontend_openai.encoder import Encoder, Tokens, is_encoder
from frontend_openai.encoder_files import EncoderFiles, read_encoder
from frontend_openai.engine_info import ENGINE
from frontends.http.background import begin
from frontends.http.message import HttpRequest
from frontends.http.services.traced import submit

if TYPE_CHECKING:
    from pathlib import Path

    from core.response import Reply
    from core.server import InferenceServer


class EmbeddingModels:
    """The encoders of one server. Loop thread only."""

    def __init__(self, server: InferenceServer):
        self._server = server
        self._found: dict[str, Encoder] = {}  # of the newest version of each that was asked for

    @staticmethod
    def of(server: InferenceServer) -> EmbeddingModels:
        """Return those of a server: the same object at every call."""
        return server.shared(EmbeddingModels)

    async def encoder(self, name: str) -> Encoder | None:
        """Return the encoder of this name; None for a model that is none.

        The first call for a version reads its files on another thread. Raises CoreError for a model that does
        not serve, and for files that do not fit.
        """
        models = self._server.models
        config = models.config(name, NEWEST)
        if ENGINE in config.parameters:
            return None
        signature = models.signature(name)
        if not is_encoder(signature):
            return None
        found = self._found.get(name)
        if found is None or found.signature is not signature:
            folders = self._folders(config)
            files = await begin(_read, name, folders, config)
            found = self._found[name] = Encoder(signature, files)
        return found

    def _folders(self, config: ModelConfig) -> tuple[Path, ...]:
        for each in self._server.models.versions():
            # The version need not be READY: a plugin may load it when a request comes.
            if getattr(each, "config", None) is config:
                return each.path, each.directory
        return ()

    async def close(self) -> None:
        """Forget the models, because the server has stopped."""
        self._found.clear()


def _read(name: str, folders: tuple[Path, ...], config: ModelConfig) -> EncoderFiles:
    written = {key: value.string_value for key, value in config.parameters.items()}
    return read_encoder(name, folders, written)


async def embedded(
    server: InferenceServer,
    call: HttpRequest,
    encoder: Encoder,
    inputs: Sequence[str] | Sequence[Sequence[int]],
    field_of: Callable[[int], str],
) -> tuple[Any, int]:
    """Return the embeddings of texts or lists of tokens, FP32[inputs, numbers], and the number of tokens.

    field_of   returns the field of the request with an input, by its number
    Raises Exhausted for a caller without tokens, FieldError for a text that is too long.
    """
    if call.meter is not None:
        call.meter.check()
    tokens: list[Tokens]
    if isinstance(inputs[0], str):
        encoder.check_sizes(inputs, field_of)  # type: ignore[arg-type]
        tokens = await begin(encoder.encode, inputs)  # type: ignore[arg-type]
    else:
        tokens = [(each, [0] * len(each)) for each in inputs]  # type: ignore[misc]
    encoder.check(tokens, field_of)
    id = call.headers.get("X-Request-Id", "")

    def ask(request: InferenceRequest) -> Reply:
        request.id = id
        call.asked = call.asked or request
        return submit(server, call, request)

    count = sum(len(ids) for ids, _ in tokens)
    try:
        rows = await encoder.rows(ask, tokens)
    finally:
        if call.meter is not None:
            call.meter.add(count, -1)
    return rows, count
