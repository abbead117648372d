"""Requests whose answers cannot be the same, and why."""

from __future__ import annotations

import re
from typing import Any

from replay.recorded import Recorded

_CHANGING = ("--model-control-mode=explicit", "--model-control-mode=poll")
_INDEX = ("/v2/repository/index", "/inference.GRPCInferenceService/RepositoryIndex")
_NO_FILES = re.compile(r"status 200, now 500: .*failed to load \\?'\w+\\?', failed to poll")
_OF_MODELS = {
    "plain_batching": "the answer has the requests of the batch, which depend on the moment",
    "warmed": "the answer has random data of the warm-up",
}


def reason(recorded: Recorded, difference: dict[str, Any]) -> str | None:
    """Return why an answer of a replay may differ; None if it may not."""
    if "shared memory region" in difference["text"]:
        return "the shared memory of the client is gone"
    if any(each in recorded.options for each in _CHANGING):
        found = _of_changes(difference["path"], difference["text"])
        if found is not None:
            return found
    return _OF_MODELS.get(difference["model"])


def _of_changes(path: str, text: str) -> str | None:
    """Return why an answer may differ on a server whose models come and go; None if it may not."""
    if path in _INDEX and text.startswith("answers differ"):
        return "the index has the models that are being loaded or unloaded at the moment"
    if path.endswith("/load") and _NO_FILES.match(text):
        return "the tests write the files of the model while the server runs"
    if path == "/v2/models/plain/infer" and text.startswith("answers differ"):
        return "the tests change the number that the model multiplies by while the server runs"
    return None
