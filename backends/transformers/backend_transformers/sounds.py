"""Hearing: prompts with sound, as the processor of the model reads them.

text, WAV files ─► processor ─► [Hearing] ─► tokens with places for the sounds, and what belongs there
"""

from __future__ import annotations

import inspect
import threading
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from core_generate import Prompt
from core_generate.sound import MOST_SECONDS, RATE, decode

from core.errors import CoreError, invalid

_LEAST = (
    RATE // 10
)  # samples; models need some tokens for each sound. Silence follows a shorter one
_NOT_FOR_MODELS = ("input_ids", "attention_mask")


class Hearing:
    """Reads prompts with sound. Thread-safe.

    processor   of transformers; its tokenizer belongs to it alone
    module      the model, which says what it takes
    bos         text of the token that begins a text; "" for none
    """

    def __init__(self, processor: Any, module: Any, bos: str):
        self._processor = processor
        self._bos = bos
        self._place: str = processor.audio_token
        self._taken = inspect.signature(module.forward).parameters.keys()
        self._most_s = _longest(processor)
        self._lock = threading.Lock()  # a call changes the padding of the tokenizer

    def read(self, prompt: Prompt) -> tuple[list[int], Mapping[str, Any]]:
        """Return the tokens of a prompt, and the arguments of the model that hold its sounds.

        Raises CoreError(INVALID) for a file that is no WAV file, sounds that are too long, and a text without
        a place for each sound. Takes a tenth of a second for half a minute of sound.
        """
        self._check_places(prompt)
        samples = self._decoded(prompt.audio)
        special = not (self._bos and prompt.text.startswith(self._bos))
        try:
            with self._lock:
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

    def _decoded(self, files: Sequence[bytes]) -> list[Any]:
        found: list[Any] = []
        total = 0.0
        for number, file in enumerate(files):
            samples = decode(file, "audio")
            seconds = len(samples) / RATE
            total += seconds
            if seconds > self._most_s:
                raise _too_long(f"sound {number}", seconds, self._most_s)
            if total > MOST_SECONDS:
                raise _too_long("the request", total, MOST_SECONDS)
            found.append(np.pad(samples, (0, max(0, _LEAST - len(samples)))))
        return found


def _longest(processor: Any) -> float:
    """Return how many seconds of one sound the model reads; its processor would cut off what follows."""
    found: Any = getattr(processor, "max_audio_len", None)  # of one that reads several windows
    return float(found or getattr(processor.feature_extractor, "chunk_length", MOST_SECONDS))


def _too_long(what: str, seconds: float, most: float) -> CoreError:
    return invalid(
        f"{what} has {seconds:.1f} seconds of sound, at most {most:g} are allowed; send a shorter one"
    )
