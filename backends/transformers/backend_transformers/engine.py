"""TextEngine: continues texts with a model of transformers.

Prompt, Sampling ─► [TextEngine] ─► TextGeneration ─► Stepper ─► events
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from core_generate import Emit, Engine, Generation, Prompt, PromptTooLong, Sampling, Status

from backend_transformers.choosing import Chooser
from backend_transformers.generation import TextGeneration
from backend_transformers.loading import Loaded
from backend_transformers.rows import CausalModel
from backend_transformers.settings import Settings
from backend_transformers.sounds import Hearing
from backend_transformers.stepper import Stepper
from backend_transformers.structure import Grammars
from core.errors import cancelled, invalid


class TextEngine(Engine):
    """Runs many generations at once, on a thread of its own."""

    def __init__(self, loaded: Loaded, settings: Settings):
        self.most = settings.slots
        self.supports = settings.supports
        self._settings = settings
        self._vocabulary = loaded.vocabulary
        self._size = loaded.logits
        self._weights = loaded.bytes
        self._hearing = _hearing(loaded, settings.context)
        self._grammars = Grammars(loaded.vocabulary, settings.end_tokens, loaded.logits)
        self._stepper = Stepper(
            CausalModel(loaded.module), settings.slots, settings.batch, settings.threads
        )

    def generate(self, prompt: Prompt, sampling: Sampling, emit: Emit) -> Generation:
        tokens, sounds = self._read(prompt)
        self._check(tokens)
        self._check_tokens("logit_bias", sampling.logit_bias)
        self._check_tokens("stop_token_ids", sampling.stop_tokens)
        structure = sampling.structure
        matcher = None if structure is None else self._grammars.matcher(structure)
        ends = frozenset(sampling.stop_tokens)
        if not sampling.ignore_eos or matcher is not None:
            ends |= self._settings.end_tokens
        chooser = Chooser(
            sampling, tokens, self._settings.sampling, ends, self._vocabulary, matcher
        )
        generation = TextGeneration(
            tokens,
            self._settings.context - len(tokens),
            sampling,
            ends,
            chooser,
            self._vocabulary,
            matcher,
            emit,
        )
        generation.sounds = sounds
        if prompt.stopped():
            raise cancelled()
        self._stepper.add(generation)
        return generation

    def _read(self, prompt: Prompt) -> tuple[list[int], Mapping[str, Any]]:
        """Return the tokens of a prompt, and the arguments of the model for its sounds."""
        if prompt.audio and self._hearing is not None:
            return self._hearing.read(prompt)
        return list(prompt.tokens) or self._vocabulary.prompt(prompt.text), {}

    def tokenize(self, text: str, special: bool = True) -> list[int]:
        return self._vocabulary.tokenize(text, special)

    def detokenize(self, tokens: Sequence[int]) -> str:
        self._check_tokens("prompt_token_ids", tokens)
        return self._vocabulary.detokenize(tokens)

    def status(self) -> Status:
        waiting, running = self._stepper.generations()
        used = sum(each.used for each in (*waiting, *running))
        capacity = self._settings.context * self._settings.slots
        return Status(len(waiting), len(running), min(1.0, used / capacity))

    def close(self) -> None:
        self._stepper.close()

    @property
    def bytes(self) -> int:
        """Bytes of the weights, and of the cache of keys and values that is allocated now. Any thread."""
        return self._weights + self._stepper.rows.bytes

    def _check(self, tokens: Sequence[int]) -> None:
        if not tokens:
            raise invalid("the prompt has no token: send a text that is not empty")
        self._check_tokens("prompt_token_ids", tokens)
        if len(tokens) >= self._settings.context:
            raise PromptTooLong(
                f"the prompt has {len(tokens)} tokens, and the context of the model is "
                f"{self._settings.context} tokens, prompt and answer together; send a shorter prompt, or "
                "load the model with a larger parameter 'context'"
            )

    def _check_tokens(self, field: str, tokens: Iterable[int]) -> None:
        """Raise CoreError(INVALID), which names the field, unless the vocabulary has all tokens."""
        for token in tokens:
            if not 0 <= token < self._size:
                raise invalid(
                    f"'{field}' has the token {token}, the vocabulary has 0 to {self._size - 1}"
                )


def _hearing(loaded: Loaded, context: int) -> Hearing | None:
    """Return what reads prompts with sound; None for a model without."""
    if loaded.processor is None:
        return None
    return Hearing(loaded.processor, loaded.module, loaded.vocabulary.bos, context)
