"""Requests whose answers cannot be the same, and why."""

from __future__ import annotations

from typing import Any

from replay.recorded import Recorded

_CHANGING = ("--model-control-mode=explicit", "--model-control-mode=poll")
_OF_MODELS = {
    "plain_batching": "the answer has the requests of the batch, which depend on the moment",
    "warmed": "the answer has random data of the warm-up",
}


def reason(recorded: Recorded, difference: dict[str, Any]) -> str | None:
    """Return why an answer of a replay may differ; None if it may not."""
    if "shared memory region" in difference["text"]:
        return "the shared memory of the client is gone"
    if any(each in recorded.options for each in _CHANGING):
        return "the tests change the files of the models while the server runs"
    return _OF_MODELS.get(difference["model"])
