"""Attributes of generations in traces, named by OpenTelemetry's conventions for generative models.

GenerationRun ─► [describe_generation] ─► Trace ─► core-opentelemetry ─► span of the model

A trace has the attributes in its dictionary, as "attributes": name → text, number, or tuple of texts.
"""

from __future__ import annotations

from typing import Any

from core_generate.engine import Sampling

FIRST_TOKEN = "FIRST_TOKEN"  # event at the first token

_SET = ("max_tokens", "temperature", "top_p", "top_k", "seed")
_PENALTIES = ("frequency_penalty", "presence_penalty")


def describe_request(model: str, sampling: Sampling) -> dict[str, Any]:
    """Return the attributes of a request for a generation; a field that the client has not set is absent."""
    found: dict[str, Any] = {
        "gen_ai.operation.name": "text_completion",
        "gen_ai.provider.name": "core",
        "gen_ai.request.model": model,
    }
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


def describe_embeddings(trace: Any, model: str, tokens: int) -> None:
    """Add the attributes of a request for embeddings, whose texts have some number of tokens, to a trace."""
    vars(trace).setdefault("attributes", {}).update(
        {
            "gen_ai.operation.name": "embeddings",
            "gen_ai.provider.name": "core",
            "gen_ai.request.model": model,
            "gen_ai.usage.input_tokens": tokens,
        }
    )
