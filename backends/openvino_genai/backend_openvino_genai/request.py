"""GenerationConfig of a request.

Sampling ─► [generation_config] ─► GenerationConfig of OpenVINO GenAI
"""

from __future__ import annotations

import random
from typing import Any

from core_generate import Sampling

from backend_openvino_genai.loading import reason
from backend_openvino_genai.pipeline import Pipeline
from backend_openvino_genai.structure import checked_structure
from core.errors import invalid

_ALL = 2**64 - 1  # top_k of a GenerationConfig that takes all tokens


def generation_config(pipeline: Pipeline, sampling: Sampling, room: int) -> Any:
    """Return the GenerationConfig of a request. Stop strings are not in it: GenerationText has them.

    room   tokens that the context has left
    Raises CoreError(INVALID) for values and combinations that the engine does not have, and for a structure
    that cannot be compiled.
    """
    _refuse(sampling)
    config = pipeline.config()
    config.max_new_tokens = min(room, sampling.max_tokens or room)
    config.min_new_tokens = min(config.max_new_tokens, sampling.min_tokens)
    config.ignore_eos = sampling.ignore_eos
    config.do_sample = sampling.temperature != 0
    if sampling.temperature:
        config.temperature = sampling.temperature
    if sampling.top_k is not None:
        config.top_k = sampling.top_k or _ALL
    for name in ("top_p", "min_p"):
        if (value := getattr(sampling, name)) is not None:
            setattr(config, name, value)
    for name in ("frequency_penalty", "presence_penalty"):
        if value := getattr(sampling, name):
            setattr(config, name, value)
    if sampling.repetition_penalty != 1:
        config.repetition_penalty = sampling.repetition_penalty
    # Without a seed, each request would have the seed 0.
    seed = random.getrandbits(32) if sampling.seed is None else sampling.seed
    config.rng_seed = seed % 2**64
    if sampling.stop_tokens:
        config.stop_token_ids = {*config.stop_token_ids, *sampling.stop_tokens}
    if sampling.logprobs is not None:
        config.logprobs = 1  # the log probability of the chosen token; _refuse refuses alternatives
    if sampling.structure is not None:
        config.structured_output_config = checked_structure(pipeline, sampling.structure)
    try:
        config.validate()
    except RuntimeError as error:
        raise invalid(f"OpenVINO GenAI refuses the sampling parameters: {reason(error)}") from None
    return config


def _refuse(sampling: Sampling) -> None:
    """Raise CoreError(INVALID) for what would be ignored, or would break the structure of a text."""
    if sampling.logprobs:
        raise invalid(
            f"'logprobs' is {sampling.logprobs}, it must be 0: this engine reports the log probability of "
            "each token, without alternatives"
        )
    if sampling.ignore_eos and sampling.stop_tokens:
        raise invalid(
            "'stop_token_ids' with 'ignore_eos': this engine would ignore both; send one of them"
        )
    if sampling.structure is not None and (sampling.ignore_eos or sampling.min_tokens):
        name = "ignore_eos" if sampling.ignore_eos else "min_tokens"
        raise invalid(
            f"'{name}' with a structure: the text must be able to end where its structure ends; send one "
            "of them"
        )
