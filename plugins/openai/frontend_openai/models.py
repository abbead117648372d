"""Finds the model of a request, and its LoRA adapter. /v1/models lists all models that serve."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from core.errors import CoreError, Kind
from core.request import NEWEST
from frontend_openai.adapter import TextModel
from frontend_openai.document import Document
from frontend_openai.engine_info import info_of
from frontend_openai.errors import FieldError, wrong
from frontend_openai.options import OpenAIOptions

if TYPE_CHECKING:
    from core.server import InferenceServer

OWNER = "core"


class TextModels:
    """The models of one server, as these routes see them. Loop thread only."""

    def __init__(self, server: InferenceServer):
        self._server = server
        self._models = server.models
        self._separator = OpenAIOptions.of(server.options).openai_lora_separator
        self._started = int(time.time())
        self._found: dict[str, TextModel] = {}  # newest version of each that was asked for

    @staticmethod
    def of(server: InferenceServer) -> TextModels:
        """Return those of a server: the same object at every call."""
        return server.shared(TextModels)

    def find(self, name: str | None) -> tuple[TextModel, str]:
        """Return a model and the name of its LoRA adapter, "" for none.

        name   of a model, or model, separator and adapter; a model that has the whole name takes precedence
        Raises CoreError: FieldError for a missing or unknown name, INVALID for a model without
        the tensors that these routes need.
        """
        if not name:
            raise FieldError("model", "model: the name of a model is required", "missing")
        try:
            return self._model(name), ""
        except CoreError as error:
            if error.kind is not Kind.NOT_FOUND:
                raise
        base, separator, adapter = (
            name.rpartition(self._separator) if self._separator else ("", "", "")
        )
        if separator and base and adapter:
            try:
                model = self._model(base)
            except CoreError as error:
                if error.kind is not Kind.NOT_FOUND:
                    raise
            else:
                if self._has(model, adapter):
                    return model, adapter
        raise unknown_model(name)

    def _has(self, model: TextModel, adapter: str) -> bool:
        names = model.info.adapters
        return adapter in names if names is not None else model.able("lora_name")

    def _model(self, name: str) -> TextModel:
        signature = self._models.signature(name)
        found = self._found.get(name)
        if found is None or found.signature is not signature:
            found = TextModel(signature, info_of(self._models.config(name, NEWEST)))
            self._found[name] = found
        return found

    def listed(self) -> list[dict[str, Any]]:
        """Return an entry for each model that serves, and for each of its adapters."""
        entries = []
        names = {each.name for each in self._models.versions() if each.state == "READY"}
        for name in sorted(names):
            entries.append(self._entry(name))
            try:
                adapters = info_of(self._models.config(name, NEWEST)).adapters or ()
            except CoreError:  # several namespaces have a model of this name
                continue
            if self._separator:
                entries += [
                    self._entry(f"{name}{self._separator}{each}", name) for each in adapters
                ]
        return entries

    def entry(self, name: str) -> dict[str, Any]:
        """Return the entry of one model. Raises FieldError for one that does not serve."""
        for entry in self.listed():
            if entry["id"] == name:
                return entry
        raise unknown_model(name)

    def _entry(self, name: str, parent: str | None = None) -> dict[str, Any]:
        entry = {"id": name, "object": "model", "created": self._started, "owned_by": OWNER}
        return entry if parent is None else {**entry, "parent": parent}

    async def close(self) -> None:
        """Forget the models, because the server has stopped."""
        self._found.clear()


def unknown_model(name: str) -> FieldError:
    """Return the error for a name that no model has."""
    return FieldError(
        "model",
        f"The model '{name}' does not exist; GET /v1/models lists those that do",
        "model_not_found",
        Kind.NOT_FOUND,
    )


def known_model(server: InferenceServer, document: Document) -> str:
    """Return the field `model` of a request. Raises FieldError for an unknown model."""
    name = document.text("model") or ""
    if not server.models.knows(name):
        raise unknown_model(name)
    return name


def task_of(server: InferenceServer, name: str, tasks: tuple[str, ...], otherwise: str) -> str:
    """Return the task of a model. Raises FieldError if it is none of `tasks`.

    otherwise   what a model of another task does not do, for the error
    """
    found = info_of(server.models.config(name)).task
    if found not in tasks:
        raise wrong("model", f"model '{name}' {otherwise}; its task is {found}")
    return found
