"""A command with curl that sends a request to a model."""

from __future__ import annotations

import json
import math
from itertools import takewhile
from shlex import quote
from typing import TYPE_CHECKING, Any
from urllib.parse import quote as percent_encoded

from frontends.terminal.silence import silence

if TYPE_CHECKING:
    from core.config import InputSpec, Signature
    from core.options import Listener
    from core.server import InferenceServer

_MOST_VALUES = 100
"""Largest number of values that a command lists; more are zeros from /dev/zero."""

_NOT_IN_JSON = ("FP16", "BF16")
_STREAM = "stream"
_AUDIO = "audio"
_SEQUENCE = {"sequence_id": 1, "sequence_start": True, "sequence_end": True}


def curl(server: InferenceServer, model: str, listener: Listener, url: str) -> str:
    """Return a command with curl that sends an example request to a model.

    listener   of HTTP
    url        of that listener
    Return "" if the listener demands a certificate of each client, or if a decoupled model has a datatype
    that JSON cannot hold or too many values for a command.
    """
    if listener.mutual:  # it needs a certificate of the client
        return ""
    signature = server.models.signature(model)
    in_sequence = server.models.config(model).HasField("sequence_batching")
    inputs = _needed(signature)
    parameters = dict(_SEQUENCE) if in_sequence else {}
    words = ["curl", "-s"]
    if listener.encrypted:
        words.append("-k")
    if listener.is_unix:
        words += ["--unix-socket", quote(listener.address.removeprefix("unix:"))]
        url = f"{'https' if listener.encrypted else 'http'}://localhost"
    if server.options.value("auth_tokens") or server.options.value("auth_jwks"):
        words.append('-H "Authorization: Bearer $TOKEN"')
    path = f"{url}/v2/models/{percent_encoded(model, safe='')}"
    verb = "generate_stream" if signature.decoupled else "generate"
    if _is_sound(inputs):
        fields = {_AUDIO: "@-", **parameters}
        form = " ".join(f"-F {quote(f'{name}={_field(value)}')}" for name, value in fields.items())
        return f"({silence()}) | " + " ".join([*words, quote(f"{path}/{verb}"), form])
    kinds = {each.dtype.name for each in inputs}
    kinds |= {each.dtype.name for each in signature.outputs.values()}
    small = sum(_count(each) for each in inputs) <= _MOST_VALUES
    if small and kinds.isdisjoint(_NOT_IN_JSON):
        values = {each.name: _values(each) for each in inputs}
        if signature.decoupled and _STREAM in signature.inputs:
            values[_STREAM] = True  # else models of text answer at the end only
        body = json.dumps({**values, **parameters}, separators=(",", ":"))
        return " ".join([*words, quote(f"{path}/{verb}"), "-d", quote(body)])
    if signature.decoupled:
        return ""  # infer permits one response only
    if not kinds.isdisjoint(_NOT_IN_JSON):
        parameters["binary_data_output"] = True
        words += ["-o", "answer"]
    head, size = _binary(signature, inputs, parameters)
    words += ["-H", f"'Inference-Header-Content-Length: {len(head)}'", "--data-binary", "@-"]
    return f"(printf %s {quote(head)}; head -c {size} /dev/zero) | " + " ".join(
        [*words, quote(f"{path}/infer")]
    )


def _needed(signature: Signature) -> list[InputSpec]:
    """Return the inputs that are not optional.

    If all are optional, as those of language models, return the first one and those directly behind it that
    have its datatype.
    """
    every = list(signature.inputs.values())
    needed = [each for each in every if not each.optional]
    return needed or list(takewhile(lambda each: each.dtype is every[0].dtype, every))


def _is_sound(inputs: list[InputSpec]) -> bool:
    """Return whether a request needs one sound and nothing else, as those for engines of speech do."""
    first = inputs[0] if inputs else None
    if first is None or first.name != _AUDIO or first.dtype.name != "BYTES" or _count(first) != 1:
        return False
    return all(each.optional for each in inputs[1:])


def _field(value: Any) -> str:
    """Return the text of a form's field."""
    return value if isinstance(value, str) else json.dumps(value)


def _binary(
    signature: Signature, inputs: list[InputSpec], parameters: dict[str, Any]
) -> tuple[str, int]:
    """Return (JSON part of an infer request, number of zero bytes that follow it as the data of its tensors).

    An element of BYTES takes four zeros: the length of an empty text.
    """
    described, total = [], 0
    for each in inputs:
        size = _count(each) * (each.dtype.byte_size or 4)
        total += size
        batched = signature.max_batch_size > 0 and not each.shape_tensor
        described.append(
            {
                "name": each.name,
                "shape": [1] * batched + _shape(each),
                "datatype": each.dtype.name,
                "parameters": {"binary_data_size": size},
            }
        )
    document: dict[str, Any] = {"inputs": described}
    if parameters:
        document["parameters"] = parameters
    return json.dumps(document, separators=(",", ":")), total


def _shape(spec: InputSpec) -> list[int]:
    return [1 if size == -1 else size for size in spec.dims]


def _count(spec: InputSpec) -> int:
    return math.prod(_shape(spec))


def _values(spec: InputSpec) -> Any:
    """Return example data of an input for `generate`: a flat list, or the element if there is one only.

    The elements are 0, false or "text".
    """
    kind = spec.dtype.name
    zero: Any = {"BYTES": "text", "BOOL": False}.get(kind, 0)
    count = _count(spec)
    return zero if count == 1 else [zero] * count
