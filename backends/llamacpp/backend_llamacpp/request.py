"""Requests for llama.cpp's /v1/completions and /completion.

Prompt, Sampling ─► [completion_request] ─► document
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from typing import Any

from core_generate import Prompt, Sampling
from core_generate.engine import never

from backend_llamacpp.grammar import grammar_of
from backend_llamacpp.settings import MARKER, Settings
from core.errors import invalid

_RANDOM_SEED = 2**32 - 1  # for llama.cpp, this seed means that there is none


def completion_request(
    prompt: Prompt,
    sampling: Sampling,
    settings: Settings,
    batch: int,
    stopped: Callable[[], bool] = never,
) -> dict[str, Any]:
    """Return a request. It has no stop strings, because llama.cpp may lose text before them.

    batch   tokens that are computed at once. A prompt that may have more reports its progress, in a chunk at
            its begin and after each batch: each is an occasion to cancel. Others do not, because each chunk
            wakes the threads of all generations, and first tokens wait for that. Before a stop string, the
            progress is all that tells how much of the prompt was cached
    stopped   whether the generation is cancelled; asked while images and sounds are decoded
    Raises CoreError(INVALID) for a structure that cannot be compiled, an unknown adapter, and an image or
    sound that cannot be decoded or has no place in the text; CoreError(CANCELLED) if it is stopped meanwhile.
    """
    document: dict[str, Any] = {
        "prompt": _prompt(prompt, settings, stopped),
        "stream": True,
        # Both are needed for chunks that have the ids of their tokens.
        "verbose": True,
        "return_tokens": True,
        "return_progress": bool(sampling.stop) or _may_exceed(batch, prompt),
        "n_predict": -1 if sampling.max_tokens is None else sampling.max_tokens,
    }
    for name in ("temperature", "top_p", "top_k", "min_p"):
        if (value := getattr(sampling, name)) is not None:
            document[name] = value
    if sampling.frequency_penalty or sampling.presence_penalty or sampling.repetition_penalty != 1:
        document |= {
            "frequency_penalty": sampling.frequency_penalty,
            "presence_penalty": sampling.presence_penalty,
            "repeat_penalty": sampling.repetition_penalty,
            "repeat_last_n": settings.context,
        }
    if sampling.seed is not None:
        # Tokens from the cache were computed in batches of other sizes, and so with other rounding.
        document |= {"seed": sampling.seed % _RANDOM_SEED, "cache_prompt": False}
    if sampling.ignore_eos:
        document["ignore_eos"] = True
    if sampling.logit_bias:
        document["logit_bias"] = [[token, bias] for token, bias in sampling.logit_bias.items()]
    if sampling.logprobs is not None:
        document["n_probs"] = max(1, sampling.logprobs)
    if sampling.structure is not None:
        document["grammar"] = grammar_of(sampling.structure)
    if settings.adapters:
        document["lora"] = _adapters(prompt.adapter, settings)
    return document


def _may_exceed(tokens: int, prompt: Prompt) -> bool:
    """Return whether a prompt may have more tokens: a token of a text is at least one byte of it."""
    if prompt.images or prompt.audio:
        return True
    text = prompt.text + prompt.suffix
    return len(prompt.tokens) > tokens or len(text) > tokens or len(text.encode()) > tokens


def _prompt(prompt: Prompt, settings: Settings, stopped: Callable[[], bool]) -> Any:
    if not prompt.images and not prompt.audio:
        return list(prompt.tokens) or _text(prompt, settings)
    if prompt.images and prompt.audio:
        raise invalid(
            f"the request has {len(prompt.images)} images and {len(prompt.audio)} sounds: this engine cannot "
            f"tell which of them each '{MARKER}' in the prompt stands for; send images or sounds only"
        )
    what = "images" if prompt.images else "sounds"
    text, count = _text(prompt, settings), len(prompt.images) + len(prompt.audio)
    places = text.count(MARKER)
    if not places and not prompt.tokens:
        text, places = MARKER * count + text, count
    if places != count:
        has = "tokens, not text" if prompt.tokens else f"{places} of them"
        raise invalid(
            f"the request has {count} {what}, so its prompt needs {count} times the text '{MARKER}' where "
            f"they belong, or none; it has {has}"
        )
    files = [base64.b64encode(each).decode() for each in _files(prompt, stopped)]
    return {"prompt_string": text, "multimodal_data": files}


def _files(prompt: Prompt, stopped: Callable[[], bool]) -> Iterator[bytes]:
    """Return the images or sounds in the only form that llama.cpp gets."""
    if prompt.audio:
        from backend_llamacpp.sounds import plain_files

        return plain_files(prompt.audio, stopped)
    from backend_llamacpp.pictures import bitmaps  # it imports PIL, which most models do not need

    return bitmaps(prompt.images, stopped)


def _text(prompt: Prompt, settings: Settings) -> str:
    if not prompt.suffix:
        return prompt.text
    before, between, behind = settings.infill
    return f"{before}{prompt.text}{between}{prompt.suffix}{behind}"


def _adapters(name: str, settings: Settings) -> list[dict[str, float]]:
    """Return the weight of each adapter of the model: 1 for the adapter `name`, 0 for the others.

    All are 0 for the name "". Raises CoreError(INVALID) for an unknown name.
    """
    if name and name not in settings.adapters:
        raise invalid(
            f"the model has no adapter '{name}', it has {', '.join(map(repr, settings.adapters))}"
        )
    return [{"id": i, "scale": float(each == name)} for i, each in enumerate(settings.adapters)]
