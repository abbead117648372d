"""The table of routes. OF_MODELS has those whose paths another API may have too."""

from __future__ import annotations

from frontend_tfserving.rest import services, status
from frontends.http.route import Route, row

_NAME = "/v1/models/(?P<model>[^/:]+)"
_CHOSEN = "(?:/versions/(?P<version>[0-9]+)|/labels/(?P<label>[^/:]+))"
_ANY = f"{_NAME}{_CHOSEN}?"

BELOW = f"{_NAME}(?:{_CHOSEN}|:|/metadata)"
"""Paths of OF_ONE_MODEL: their errors keep the form {"error": text}, also if another API has one for /v1/."""

OF_ONE_MODEL: tuple[Route, ...] = (
    row("POST", f"{_ANY}:predict", "inference", services.predict_service),
    row("POST", f"{_ANY}:classify", "inference", services.classify_service),
    row("POST", f"{_ANY}:explain", "inference", services.explain_service),
    row("POST", f"{_ANY}:regress", "inference", services.regress_service),
    row("GET", f"{_ANY}/metadata", "metadata", status.model_metadata),
    row("GET", f"{_NAME}{_CHOSEN}", "metadata", status.model_status),
)
OF_MODELS: tuple[Route, ...] = (
    row("GET", "/v1/models", "metadata", status.models),
    row("GET", f"{_NAME}(?P<version>)", "metadata", status.model_status),
)
