"""TextGeneration: one generation, from its prompt to its last event.

Stepper ─► logits ─► [TextGeneration] ─► Event ─► emit
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from core_generate import Emit, Event, Logprob, Sampling, StopStrings, TokenText

from backend_transformers.choosing import Chooser
from backend_transformers.structure import Matcher
from backend_transformers.vocabulary import Vocabulary
from core.errors import CoreError


class TextGeneration:
    """A generation. All methods but `cancel` run on the thread of the engine.

    prompt   its tokens
    sounds   arguments of the model that belong to places in the prompt; {} without sound, or once read
    read     tokens of the prompt that are computed
    cache    keys and values of these; None before the first, and once the generation is a row of the batch
    last     the token that was chosen last
    over     whether it is cancelled, or the last event is emitted
    """

    def __init__(
        self,
        prompt: Sequence[int],
        room: int,
        sampling: Sampling,
        ends: frozenset[int],
        chooser: Chooser,
        vocabulary: Vocabulary,
        matcher: Matcher | None,
        emit: Emit,
    ):
        self.prompt = prompt
        self.sounds: Mapping[str, Any] = {}
        self.read = 0
        self.cache: Any = None
        self.last = 0
        self.over = False
        self._sampling = sampling
        self._most = min(room, sampling.max_tokens or room)
        self._ends = ends
        self._chooser = chooser
        self._matcher = matcher
        self._emit = emit
        self._count = 0
        self._text = TokenText(vocabulary.plain)
        self._text.follow(prompt)
        self._stops = StopStrings(sampling.stop) if sampling.stop else None

    @property
    def used(self) -> int:
        """Tokens in its context."""
        return self.read + self._count

    def cancel(self) -> None:
        """Stop the generation before its next token, or the next part of its prompt. Any thread."""
        self.over = True

    def go_on(self, logits: Any, likely: int) -> None:
        """Choose the next token and emit its event. An error ends the generation.

        logits   FP32[vocabulary]
        likely   the token with the highest logit
        """
        if self.over:
            return
        try:
            self.last, logprobs = self._chooser.choose(logits, likely)
            self._take(self.last, logprobs)
        except Exception as error:
            self.fail(error)

    def fail(self, error: Exception) -> None:
        """End the generation with an error, unless it is over."""
        if self.over:
            return
        self.over = True
        self._emit(error if isinstance(error, CoreError) else failed(error))

    def _take(self, token: int, logprobs: tuple[Logprob, ...]) -> None:
        self._count += 1
        finish = text = ""
        if token in self._ends:
            finish = "stop"  # the token that ends a text is no part of it
        else:
            text = self._text.feed((token,))
            if self._matcher is not None:
                self._matcher.take(token)
                if self._matcher.is_complete:
                    finish = "stop"
            if not finish and self._count >= self._most:
                finish = "length"
        if finish:
            text += self._text.end()
        if self._stops is not None and self._count > self._sampling.min_tokens:
            text = self._stops.feed(text)
            if self._stops.found:
                finish = "stop"
            elif finish:
                text += self._stops.end()
        self.over = self.over or bool(finish)
        stop = "" if self._stops is None else self._stops.found
        self._emit(Event(text, (token,), logprobs, finish, len(self.prompt), count=1, stop=stop))


def failed(error: Exception) -> CoreError:
    """Return the error (INTERNAL) for an exception of the model."""
    from core.errors import internal

    return internal(f"transformers: {type(error).__name__}: {error}")
