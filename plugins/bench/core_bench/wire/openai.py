"""Bodies of OpenAI's routes: chats, completions, embeddings; from a prompt, random words, or a file."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import orjson

from core.errors import invalid
from core_bench.data.json_file import read_document
from core_bench.model.address import Address
from core_bench.plan import Side
from core_bench.wire.http_infer import head
from core_bench.wire.request import WireRequest

ROUTES = ("chat/completions", "completions", "embeddings")
_TEXT = "the a model server answers many requests of some client with one batch and no delay at all"
_WORDS = _TEXT.split()


def openai_requests(side: Side, address: Address) -> list[WireRequest]:
    """Return whole requests. Raises CoreError for an endpoint or a file of another form."""
    route = side.endpoint.strip("/")
    kind = next((each for each in ROUTES if route.endswith(each)), None)
    if kind is None:
        raise invalid(
            f"--endpoint {side.endpoint} is not known; expected v1/chat/completions, "
            "v1/completions or v1/embeddings"
        )
    if side.streaming and kind == "embeddings":
        raise invalid("embeddings have no stream; leave out --streaming")
    path = f"{address.prefix}/{route}"
    made = []
    for body in _bodies(side, kind):
        body = {"model": side.model, **body, **(side.parameters or {})}
        if side.streaming:
            body["stream"] = True
            body.setdefault("stream_options", {"include_usage": True})
        data = orjson.dumps(body)
        headers = [("Content-Type", "application/json"), *side.headers]
        made.append(WireRequest(head("POST", path, address, headers, len(data)) + data))
    return made


def _bodies(side: Side, kind: str) -> list[dict[str, Any]]:
    if side.input_data not in (("random",), ("zero",)):
        return [each for path in side.input_data for each in _payloads(path)]
    return [_body(kind, prompt) for prompt in _prompts(side)]


def _body(kind: str, prompt: str) -> dict[str, Any]:
    if kind == "chat/completions":
        return {"messages": [{"role": "user", "content": prompt}]}
    return {"prompt" if kind == "completions" else "input": prompt}


def _prompts(side: Side) -> Sequence[str]:
    """Return the prompt of --string-data, or different ones of about --string-length characters."""
    if side.string_data is not None:
        return [side.string_data]
    source = random.Random(side.seed)
    prompts = []
    for _ in range(side.different):
        text = source.choice(_WORDS)
        while len(text) < side.string_length:
            text += " " + source.choice(_WORDS)
        prompts.append(text)
    return prompts


def _payloads(path: str) -> list[dict[str, Any]]:
    """Return the bodies of a file: elements of `data`, or the `payload` of each, as for perf_analyzer."""
    found = []
    for each in read_document(path):
        body = each.get("payload", each) if isinstance(each, dict) else None
        for one in body if isinstance(body, list) else [body]:
            if not isinstance(one, dict):
                raise invalid(
                    f"'{path}' needs an object, or an object with 'payload', for each request"
                )
            found.append(one)
    return found
