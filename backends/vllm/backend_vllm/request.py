"""Fields of vLLM's SamplingParams for a request. Imports no part of vLLM.

Sampling ─► [sampling_values] ─► fields of SamplingParams, structure_values ─► those of its structured_outputs
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from core_generate import Sampling, Structure

_PLAIN = ("frequency_penalty", "presence_penalty", "ignore_eos")
_OPTIONAL = ("temperature", "top_p", "top_k", "min_p")
_SEEDS = 2**63  # vLLM keeps seeds as int64


def sampling_values(sampling: Sampling, room: int, defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields for a request, all but `structured_outputs` and `output_kind`.

    room       tokens that the context has left, at least 1
    defaults   sampling parameters where a request gives none, by vLLM's names
    """
    values = {name: getattr(sampling, name) for name in _PLAIN}
    values["repetition_penalty"] = sampling.repetition_penalty
    if sampling.repetition_penalty == 1:
        values["repetition_penalty"] = defaults.get("repetition_penalty", 1.0)
    for name in _OPTIONAL:
        if (value := getattr(sampling, name)) is None:
            value = defaults.get(name)
        if value is not None:
            values[name] = value
    most = min(room, sampling.max_tokens or defaults.get("max_tokens") or room)
    values["max_tokens"] = most
    values["min_tokens"] = min(sampling.min_tokens, most)
    values["seed"] = None if sampling.seed is None else _int64(sampling.seed)
    values["stop"] = list(sampling.stop) or None
    values["stop_token_ids"] = list(sampling.stop_tokens) or None
    values["logit_bias"] = dict(sampling.logit_bias) or None
    values["logprobs"] = sampling.logprobs
    return values


def structure_values(structure: Structure) -> dict[str, Any]:
    """Return the one field of StructuredOutputsParams that stands for a structure."""
    if structure.schema is True:
        return {"json_object": True}
    if structure.schema is not None:
        return {"json": dict(structure.schema)}  # type: ignore[arg-type]  # False is none
    if structure.regex:
        return {"regex": structure.regex}
    if structure.grammar:
        return {"grammar": structure.grammar}
    return {"choice": list(structure.choices)}


def _int64(seed: int) -> int:
    """Return the seed as a number of 64 bits with a sign, and never -1, which is no seed for vLLM."""
    number = (seed + _SEEDS) % (2 * _SEEDS) - _SEEDS
    return -2 if number == -1 else number
