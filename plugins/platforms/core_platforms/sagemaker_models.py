"""Multi-model endpoints of SageMaker: it unpacks models and sends requests to load, run and unload them.

POST /models ─► folder ─► RepositoryControl.join          POST /models/<hash>/invoke ─► infer
"""

from __future__ import annotations

import asyncio
import logging
import re
from typing import TYPE_CHECKING

from core.control import ModelLocation
from core.errors import CoreError, Kind, already_exists, invalid
from core_platforms.sagemaker_folder import ROOT, checked, model_in
from frontends.http.codec.json_text import read_control
from frontends.http.errors import refusal
from frontends.http.message import HttpRequest, HttpResponse
from frontends.http.names import as_known
from frontends.http.router import Service
from frontends.http.services.metadata import json_answer

if TYPE_CHECKING:
    from core.server import InferenceServer

logger = logging.getLogger("core")

TARGET = "X-Amzn-SageMaker-Target-Model"

# Phrases in frameworks' out-of-memory errors: SageMaker then unloads another model and retries.
_NO_MEMORY = re.compile(
    r"out[ _]?of[ _]?memory|memoryerror|bad_alloc|\bOOM\b|failed to allocate memory|_ALLOC_FAILED"
    r"|CU(?:DNN|BLAS)_STATUS_NOT_INITIALIZED|(?:Dst|Src) tensor is not initialized"
    r"|no space left on device",
    re.IGNORECASE,
)
_LABEL = re.compile(r"[!-.0-~]{1,255}")  # the characters of one path segment
_BLAMES_THE_CLIENT = (Kind.INVALID, Kind.NOT_FOUND, Kind.UNSUPPORTED)


class SageMakerModels:
    """The services below /models. Not thread-safe: call from the event loop only.

    infer   the inference service
    root    folder in which SageMaker unpacks models
    """

    def __init__(self, infer: Service, root: str = ROOT):
        self._infer = infer
        self._root = root

    async def index(self, server: InferenceServer, call: HttpRequest) -> HttpResponse:
        """Return hash and location of each model that `load` has loaded and that is ready."""
        found = [
            place for place in server.control.repository.joined() if _serves(server, place.name)
        ]
        return json_answer({"models": [_told_of(place) for place in found]})

    async def one(self, server: InferenceServer, call: HttpRequest) -> HttpResponse:
        """Return hash and location of a model that `load` has loaded; 404 for any other."""
        if (place := _place(server, call.model)) is None:
            return _unknown(call.model)
        return json_answer(_told_of(place))

    async def load(self, server: InferenceServer, call: HttpRequest) -> HttpResponse:
        """Load a model that SageMaker has unpacked.

        The response is 409 if the model is already loaded, 507 if the load found too little memory, and 400
        for any other error.
        """
        try:
            label, url = _asked(call)
            name = _name(call, label)
            if any(place.label == label for place in server.control.repository.joined()):
                raise already_exists(f"model '{label}' is loaded already")
            folder = await asyncio.to_thread(lambda: model_in(checked(url, self._root)))
        except CoreError as error:
            return _refused(error, tried=False)
        logger.info("SageMaker: loading '%s' from %s", name, folder)
        try:
            await server.control.repository.join(name, label, str(folder.parent), folder.name)
        except CoreError as error:
            return _refused(error, tried=True)
        return HttpResponse()

    async def unload(self, server: InferenceServer, call: HttpRequest) -> HttpResponse:
        """Unload a model that `load` has loaded, with its composing models; 404 for any other model.

        Returns when the model has no request left. An error is 400.
        """
        if (place := _place(server, call.model)) is None:
            return _unknown(call.model)
        logger.info("SageMaker: unloading '%s'", place.name)
        try:
            await server.control.repository.leave(place.name)
        except CoreError as error:
            return _refused(error, tried=False)
        return HttpResponse()

    async def invoke(self, server: InferenceServer, call: HttpRequest) -> HttpResponse:
        """Run a model that `load` has loaded; 404 for any other.

        An error is 507 if it says that memory is short and does not blame the request, else 400.
        """
        if (place := _place(server, call.model)) is None:
            return _unknown(call.model)
        call.captures = {"model": place.name, "version": None}
        try:
            return await self._infer(server, call)
        except CoreError as error:
            return _refused(error, tried=error.kind not in _BLAMES_THE_CLIENT)


def _place(server: InferenceServer, label: str) -> ModelLocation | None:
    """Return the location of the model with this SageMaker hash, percent-encoded or not; None if unknown."""
    places = {place.label: place for place in server.control.repository.joined()}
    return places.get(as_known(label, places.__contains__))


def _told_of(place: ModelLocation) -> dict[str, str]:
    return {"modelName": place.label, "modelUrl": place.location}


def _asked(call: HttpRequest) -> tuple[str, str]:
    """Return hash and url of a model to load. Raises CoreError(INVALID) if the request has no valid ones."""
    document = read_control(call.body)
    found = document if type(document) is dict else {}
    label, url = found.get("model_name"), found.get("url")
    if not (type(label) is str and type(url) is str and label and url):
        raise invalid("a load request needs the texts 'model_name' and 'url'")
    if _LABEL.fullmatch(label) is None:
        raise invalid(
            "invalid 'model_name': it is a part of paths, of at most 255 letters and signs"
        )
    return label, url


def _name(call: HttpRequest, label: str) -> str:
    """Return a model's name in this server: the text of the header TARGET, or else the hash `label`.

    "/" and "%" become %2F and %25.
    """
    target = call.headers.get(TARGET) or label
    return target.replace("%", "%25").replace("/", "%2F")


def _serves(server: InferenceServer, name: str) -> bool:
    try:
        return server.models.is_ready(name)
    except CoreError:
        return False


def _unknown(label: str) -> HttpResponse:
    return refusal(404, f"model '{label}' is not loaded")


def _refused(error: CoreError, *, tried: bool) -> HttpResponse:
    """Return the response for an error: 409 for ALREADY_EXISTS, 507 if memory was short, else 400.

    tried   whether the server may have allocated memory. If not, the error is never 507: a text that
            mentions memory may only quote the client
    """
    if error.kind is Kind.ALREADY_EXISTS:
        return refusal(409, error.message)
    return refusal(507 if tried and _NO_MEMORY.search(error.message) else 400, error.message)
