"""Requests whose answers cannot be the same, and why."""

from __future__ import annotations

import re
from typing import Any

from replay.recorded import Recorded

_CHANGING = ("--model-control-mode=explicit", "--model-control-mode=poll")
_INDEX = ("/v2/repository/index", "/inference.GRPCInferenceService/RepositoryIndex")
_NO_FILES = re.compile(r"status 200, now 500: .*failed to load \\?'\w+\\?', failed to poll")
_INFER = re.compile(r"/v2/models/\w+/infer|/inference\.GRPCInferenceService/Model(Stream)?Infer")
# As tests/conformance/test_shared_memory.py names its regions, on a server without options.
_NO_REGION = re.compile(r", now .*Unable to find shared memory region: \\?'region\d+")
_BATCH = "the answer has the requests of the batch, which depend on the moment"
_OF_MODELS = {
    "cancellable": "the answer counts the cancellations so far, which depend on the moment",
    "endless": "the answer counts the streams so far, which depend on the moment",
    "one": _BATCH,
    "ordered": _BATCH,
    "plain_batching": _BATCH,
    "process": "the answer has the id of a process",
    "warmed": "the answer has random data of the warm-up",
}


def reason(recorded: Recorded, difference: dict[str, Any]) -> str | None:
    """Return why an answer of a replay may differ; None if it may not."""
    if not recorded.options and _is_gone(difference["path"], difference["text"]):
        return "the shared memory of the client is gone"
    if any(each in recorded.options for each in _CHANGING):
        found = _of_changes(difference["path"], difference["text"])
        if found is not None:
            return found
    return _OF_MODELS.get(difference["model"]) if _has_other_content(difference["text"]) else None


def _has_other_content(text: str) -> bool:
    """Return whether both answers have one status, and differ in what they hold."""
    return text.startswith("answers differ")


def _is_gone(path: str, text: str) -> bool:
    """Return whether a request for inference misses the shared memory of its client."""
    return bool(_INFER.fullmatch(path) and _NO_REGION.search(text))


def _of_changes(path: str, text: str) -> str | None:
    """Return why an answer may differ on a server whose models come and go; None if it may not."""
    if path in _INDEX and text.startswith("answers differ"):
        return "the index has the models that are being loaded or unloaded at the moment"
    if path.endswith("/load") and _NO_FILES.match(text):
        return "the tests write the files of the model while the server runs"
    if path == "/v2/models/plain/infer" and text.startswith("answers differ"):
        return "the tests change the number that the model multiplies by while the server runs"
    return None
