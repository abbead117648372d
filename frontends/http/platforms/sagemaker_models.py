"""Multi-model endpoints of SageMaker: it unpacks models, and says which to load, to ask and to unload.

POST /models ─► folder ─► Management.join          POST /models/<hash>/invoke ─► infer
"""

from __future__ import annotations

import asyncio
import logging
import re
from pathlib import Path

from core.control import ModelLocation
from core.errors import CoreError, Kind, already_exists, invalid
from core.server import InferenceServer
from frontends.http.codec.json_text import read_control
from frontends.http.errors import refusal
from frontends.http.message import HttpRequest, HttpResponse
from frontends.http.names import as_known
from frontends.http.platforms.sagemaker_folder import ROOT, checked, model_in
from frontends.http.router import Service
from frontends.http.services.metadata import json_answer

logger = logging.getLogger("core")

TARGET = "X-Amzn-SageMaker-Target-Model"

# What errors of frameworks say when memory is short: SageMaker then unloads another model, and asks again.
_NO_MEMORY = re.compile(
    r"out[ _]?of[ _]?memory|memoryerror|bad_alloc|\bOOM\b|failed to allocate memory|_ALLOC_FAILED"
    r"|CU(?:DNN|BLAS)_STATUS_NOT_INITIALIZED|(?:Dst|Src) tensor is not initialized"
    r"|no space left on device",
    re.IGNORECASE,
)
_LABEL = re.compile(r"[!-.0-~]{1,255}")  # what a path may have between two slashes
_BLAMES_THE_CLIENT = (Kind.INVALID, Kind.NOT_FOUND, Kind.UNSUPPORTED)


class SageMakerModels:
    """What is below /models. Loop thread only.

    infer   the service that answers for a model
    root    where SageMaker puts what it has unpacked
    """

    def __init__(self, infer: Service, root: str = ROOT):
        self._infer = infer
        self._root = root

    async def index(self, server: InferenceServer, call: HttpRequest) -> HttpResponse:
        """Those that serve, each with its hash and its place."""
        found = [
            place for place in server.control.repository.joined() if _serves(server, place.name)
        ]
        return json_answer({"models": [_told_of(place) for place in found]})

    async def one(self, server: InferenceServer, call: HttpRequest) -> HttpResponse:
        """The place of a model; 404 for one that has not been loaded."""
        if (place := _place(server, call.model)) is None:
            return _unknown(call.model)
        return json_answer(_told_of(place))

    async def load(self, server: InferenceServer, call: HttpRequest) -> HttpResponse:
        """Load a model that SageMaker has unpacked: 409 if it is there, 507 if memory is short."""
        try:
            label, url = _asked(call)
            name = _name(call, label)
            if any(place.label == label for place in server.control.repository.joined()):
                raise already_exists(f"model '{label}' is loaded already")
            folder = await asyncio.to_thread(self._folder, url)
        except CoreError as error:
            return _refused(error, tried=False)
        logger.info("SageMaker: loading '%s' from %s", name, folder)
        try:
            await server.control.repository.join(name, label, str(folder.parent), folder.name)
        except CoreError as error:
            return _refused(error, tried=True)
        return HttpResponse()

    async def unload(self, server: InferenceServer, call: HttpRequest) -> HttpResponse:
        """Unload a model and what it is composed of; answers when no request is left."""
        if (place := _place(server, call.model)) is None:
            return _unknown(call.model)
        logger.info("SageMaker: unloading '%s'", place.name)
        try:
            await server.control.repository.leave(place.name)
        except CoreError as error:
            return _refused(error, tried=False)
        return HttpResponse()

    async def invoke(self, server: InferenceServer, call: HttpRequest) -> HttpResponse:
        """Ask a model that has been loaded. Any error is 400, or 507 if memory is short."""
        if (place := _place(server, call.model)) is None:
            return _unknown(call.model)
        call.captures = {"model": place.name, "version": None}
        try:
            return await self._infer(server, call)
        except CoreError as error:
            return _refused(error, tried=error.kind not in _BLAMES_THE_CLIENT)

    def _folder(self, url: str) -> Path:
        return model_in(checked(url, self._root))


def _place(server: InferenceServer, label: str) -> ModelLocation | None:
    """Where the model lies that SageMaker calls so, whether or not `label` is percent-encoded."""
    places = {place.label: place for place in server.control.repository.joined()}
    return places.get(as_known(label, places.__contains__))


def _told_of(place: ModelLocation) -> dict[str, str]:
    return {"modelName": place.label, "modelUrl": place.location}


def _asked(call: HttpRequest) -> tuple[str, str]:
    """Hash and url of a model that is to be loaded. Raises CoreError(INVALID)."""
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
    """What the model is served as: as clients call it, in a form that is a name of a model."""
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
    """tried: whether something was done that takes memory; other errors may hold any words of a client"""
    if error.kind is Kind.ALREADY_EXISTS:
        return refusal(409, error.message)
    return refusal(507 if tried and _NO_MEMORY.search(error.message) else 400, error.message)
