"""GenAiGeneration: one generation, and the events that its tokens become.

GenerationHandle ─► GenerationOutput ─► [GenAiGeneration] ─► Event ─► emit
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from core_generate import Emit, Event, Logprob, Sampling, StopStrings, TokenText
from openvino_genai import GenerationFinishReason, GenerationStatus

from backend_openvino_genai.pipeline import Pipeline
from core.errors import CoreError, internal, unavailable

_FINISHES = {GenerationFinishReason.STOP: "stop", GenerationFinishReason.LENGTH: "length"}


class GenAiGeneration:
    """A generation of StepLoop, on whose thread its methods run; `prepare` runs before, on any thread.

    over   whether no further event is emitted: it is cancelled, or has ended
    """

    def __init__(self, pipeline: Pipeline, sampling: Sampling, emit: Emit):
        self.over = False
        self._pipeline = pipeline
        self._prompt: Sequence[int] = ()
        self._config: Any = None
        self._emit = emit
        self._handle: Any = None
        known = pipeline.tokenizer
        self._text = TokenText(known.text, known.pieces, known.ends)
        self._stops = StopStrings(sampling.stop) if sampling.stop else None
        self._logprobs = sampling.logprobs is not None

    def prepare(self, prompt: Sequence[int], config: Any) -> None:
        """Take the tokens of the prompt and the GenerationConfig. May call the tokenizer."""
        self._prompt, self._config = prompt, config
        # Here, and not on the thread of the steps, where a call of the tokenizer holds up all generations.
        # Behind a known text, most first tokens need none.
        self._text.follow(prompt)

    def cancel(self) -> None:
        """Emit nothing more. The loop drops the generation before its next step. Any thread."""
        self.over = True

    def begin(self) -> None:
        """Add the generation to the pipeline. A refusal of the pipeline becomes its last event."""
        try:
            self._handle = self._pipeline.add(self._prompt, self._config)
        except Exception as error:
            self.fail(internal(f"OpenVINO GenAI has refused the generation: {error}"))

    def drop(self) -> None:
        """Take the generation out of the pipeline, which frees its memory in the next step."""
        if self._handle is not None:
            self._handle.cancel()

    def fail(self, error: CoreError) -> None:
        """Emit the error as the last event; nothing if the generation is over."""
        if not self.over:
            self.over = True
            self._emit(error)

    def read(self) -> None:
        """Emit an event for each token that the last step has computed."""
        while not self.over and self._handle.can_read():
            for output in self._handle.read().values():
                self._take(output)
        if self.over:
            return
        status = self._handle.get_status()
        if status == GenerationStatus.IGNORED:
            self.fail(
                unavailable(
                    "the cache of keys and values is full; send shorter texts or fewer at once, or load "
                    "the model with a larger parameter 'cache_size'"
                )
            )
        elif status == GenerationStatus.FINISHED:
            self._end(Event(finish="stop", prompt_tokens=len(self._prompt)))

    def _take(self, output: Any) -> None:
        tokens = output.generated_ids
        finish = _FINISHES.get(output.finish_reason, "")
        text = self._text.feed(tokens)
        if finish:
            text += self._text.end()
        if self._stops is not None:
            text = self._stops.feed(text)
            if self._stops.found:
                finish = "stop"
            elif finish:
                text += self._stops.end()
        logprobs: tuple[Logprob, ...] = ()
        if self._logprobs:
            pairs = zip(tokens, output.generated_log_probs, strict=True)
            logprobs = tuple([self._logprob(token, value) for token, value in pairs])
        stop = "" if self._stops is None else self._stops.found
        event = Event(text, tokens, logprobs, finish, len(self._prompt), stop=stop)
        if finish:
            self._end(event)
        elif not self.over:
            self._emit(event)

    def _end(self, last: Event) -> None:
        if not self.over:
            self.over = True
            self._emit(last)

    def _logprob(self, token: int, value: float) -> Logprob:
        return Logprob(token, self._pipeline.tokenizer.text([token], special=True), min(0.0, value))
