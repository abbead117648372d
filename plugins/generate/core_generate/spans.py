"""Attributes of generations in traces, named by OpenTelemetry's conventions for generative models.

GenerationRun ─► [describe_generation] ─► Trace ─► core-opentelemetry ─► span of the model
EngineInstance ─► [describe_task] ──────┘

A trace has the attributes in its dictionary, as "attributes": name → text, number, or tuple of texts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from core.request import InferenceRequest
from core_generate.engine import Sampling

FIRST_TOKEN = "FIRST_TOKEN"  # event at the first token
OPERATION = "operation"  # request parameter by which a route names what a generation is for
CHAT, COMPLETION = "chat", "text_completion"

_SET = ("max_tokens", "temperature", "top_p", "top_k", "seed")
_PENALTIES = ("frequency_penalty", "presence_penalty")


def operation_of(request: InferenceRequest) -> str:
    """Return CHAT if a route has named a generation so, else COMPLETION. Other values do not reach traces."""
    is_chat = request.has_parameters and request.parameters.get(OPERATION) == CHAT
    return CHAT if is_chat else COMPLETION


def describe_request(operation: str, model: str, sampling: Sampling) -> dict[str, Any]:
    """Return the attributes of a request for a generation; a field that the client has not set is absent."""
    found = _head(operation, model)
    fields = {name: getattr(sampling, name) for name in _SET}
    fields |= {name: getattr(sampling, name) or None for name in _PENALTIES}
    fields["stop_sequences"] = tuple(sampling.stop) or None
    for name, value in fields.items():
        if value is not None:
            found[f"gen_ai.request.{name}"] = value
    return found


def describe_generation(
    trace: Any,
    request: dict[str, Any],
    finish: str,
    tokens: tuple[int, int, int],
    came_ns: int,
    first_ns: int,
) -> None:
    """Add the attributes of a generation that has ended, and the event of its first token, to a trace.

    trace      core's Trace of the request
    request    result of `describe_request`
    finish     why it has ended; "" after an error or a cancellation
    tokens     number of tokens of the prompt, of those that came from a cache, and of generated ones
    came_ns, first_ns   time.monotonic_ns() at the admission and at the first token; 0 for no token
    """
    found = vars(trace).setdefault("attributes", {})
    found.update(request)
    prompt, cached, generated = tokens
    found["gen_ai.usage.output_tokens"] = generated
    if prompt:
        found["gen_ai.usage.input_tokens"] = prompt
    if cached:
        found["gen_ai.usage.cache_read.input_tokens"] = cached
    if finish:
        found["gen_ai.response.finish_reasons"] = (finish,)
    if first_ns:
        found["gen_ai.response.time_to_first_chunk"] = max(0, first_ns - came_ns) / 1e9
        trace.stamp(FIRST_TOKEN, first_ns)


def describe_task(
    trace: Any, operation: str, model: str, facts: Mapping[str, Any], tokens: int | None = None
) -> None:
    """Add the attributes of a request that generates no text to a trace.

    operation   a name of the conventions, or one of our own where they have none
    facts       further attributes, by their names behind "gen_ai."; None for those that are unknown
    tokens      of what the model has read; None if the engine does not count them
    """
    found = vars(trace).setdefault("attributes", {})
    found.update(_head(operation, model))
    for name, value in {**facts, "usage.input_tokens": tokens}.items():
        if value is not None:
            found[f"gen_ai.{name}"] = value


def _head(operation: str, model: str) -> dict[str, Any]:
    return {
        "gen_ai.operation.name": operation,
        "gen_ai.provider.name": "core",
        "gen_ai.request.model": model,
    }
