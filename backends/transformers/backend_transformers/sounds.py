"""Hearing: prompts with sound, as the processor of the model reads them.

text, files of sound ─► processor ─► [Hearing] ─► tokens with places for the sounds, and what belongs there
"""

from __future__ import annotations

import inspect
import threading
from collections.abc import Mapping
from typing import Any

from core_generate import Prompt, PromptTooLong
from core_generate.sound import MOST_SECONDS, RATE, decode, padded

from core.errors import CoreError, cancelled, invalid

_NOT_FOR_MODELS = ("input_ids", "attention_mask")
_MOST_TOKENS_S = 25  # that the models make of a second of sound
_FEWEST_TOKENS_S = 12.5  # GLM-ASR
_SHORT_SOUNDS = 20  # of a request, where each costs as much as a whole window: 10 minutes in all


class Hearing:
    """Reads prompts with sound. Thread-safe.

    processor   of transformers; its tokenizer belongs to it alone
    module      the model, which says what it takes
    bos         text of the token that begins a text; "" for none
    context     tokens of the longest prompt with its answer
    """

    def __init__(self, processor: Any, module: Any, bos: str, context: int):
        self._processor = processor
        self._bos = bos
        self._context = context
        self._place: str = processor.audio_token
        self._taken = inspect.signature(module.forward).parameters.keys()
        self._several = not hasattr(processor, "max_audio_len")  # such read one window of each
        self._most_s = _longest(processor)
        self._lock = threading.Lock()  # a call changes the padding of the tokenizer

    def read(self, prompt: Prompt) -> tuple[list[int], Mapping[str, Any]]:
        """Return the tokens of a prompt, and the arguments of the model that hold its sounds.

        Raises CoreError(INVALID) for a file that cannot be read, sounds that are too long or too many, and a
        text without a place for each sound; CoreError(CANCELLED) if the prompt is stopped meanwhile. Takes a
        tenth of a second for half a minute of sound.
        """
        self._check_places(prompt)
        self._check_count(len(prompt.audio))
        samples = self._decoded(prompt)
        special = not (self._bos and prompt.text.startswith(self._bos))
        try:
            with self._lock:
                if prompt.stopped():
                    raise cancelled()
                found = self._processor(
                    text=[prompt.text],
                    audio=samples,
                    sampling_rate=RATE,
                    add_special_tokens=special,
                    return_tensors="pt",
                )
        except ValueError as error:  # such as several sounds for a model that takes one
            reason = " ".join(str(error).split())[:300]
            raise invalid(f"the model cannot read this prompt with its sounds: {reason}") from None
        more = {
            name: each
            for name, each in found.items()
            if name in self._taken and name not in _NOT_FOR_MODELS
        }
        return found["input_ids"][0].tolist(), more

    def _check_places(self, prompt: Prompt) -> None:
        count, places = len(prompt.audio), prompt.text.count(self._place)
        if places != count:
            has = "tokens, not text" if prompt.tokens else f"{places} of them"
            raise invalid(
                f"the request has {count} sounds, so its prompt needs {count} times the text "
                f"'{self._place}', where they belong; it has {has}"
            )

    def _check_count(self, count: int) -> None:
        """Refuse more sounds than the context has room for, where each costs as much as a whole window."""
        if not self._several:
            return  # the processor takes one sound
        most = max(_SHORT_SOUNDS, int(self._context / (self._most_s * _MOST_TOKENS_S)))
        if count > most:
            raise invalid(
                f"the request has {count} sounds, at most {most} are allowed: the model computes "
                f"{self._most_s:g} seconds for each, also for a shorter one; send fewer, or join short ones"
            )

    def _decoded(self, prompt: Prompt) -> list[Any]:
        """Return FP32[samples] of each file. Raises before more is decoded than the context can hold."""
        found: list[Any] = []
        total = 0.0
        for number, file in enumerate(prompt.audio):
            # Twice as much: what is a little too long is refused below, with its number.
            samples = decode(file, "audio", prompt.stopped, 2 * self._most_s)
            seconds = len(samples) / RATE
            total += seconds
            if seconds > self._most_s:
                raise _too_long(f"sound {number}", seconds, self._most_s)
            if total > MOST_SECONDS:
                raise _too_long("the request", total, MOST_SECONDS)
            if (least := int(total * _FEWEST_TOKENS_S)) > self._context:
                raise PromptTooLong(
                    f"the request has {total:.1f} seconds of sound or more, which are at least {least} "
                    f"tokens, and the context of the model is {self._context} tokens, prompt and answer "
                    "together; send shorter sounds, or load the model with a larger parameter 'context'"
                )
            found.append(padded(samples))
        return found


def _longest(processor: Any) -> float:
    """Return how many seconds of one sound the model reads; its processor would cut off what follows."""
    found: Any = getattr(processor, "max_audio_len", None)  # of one that reads several windows
    return float(found or getattr(processor.feature_extractor, "chunk_length", MOST_SECONDS))


def _too_long(what: str, seconds: float, most: float) -> CoreError:
    return invalid(
        f"{what} has {seconds:.1f} seconds of sound, at most {most:g} are allowed; send a shorter one"
    )
