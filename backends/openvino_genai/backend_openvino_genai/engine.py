"""GenAiEngine: the engine of a model of OpenVINO GenAI.

Prompt, Sampling ─► [GenAiEngine] ─► Entrance ─► StepLoop ─► events
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from core_generate import Emit, Engine, Generation, Prompt, PromptTooLong, Sampling, Status

from backend_openvino_genai.entrance import Entrance
from backend_openvino_genai.generation import GenAiGeneration
from backend_openvino_genai.loop import StepLoop
from backend_openvino_genai.pipeline import Pipeline
from backend_openvino_genai.request import generation_config
from backend_openvino_genai.settings import SUPPORTS, Settings
from core.errors import invalid

_MOST_THREADS = 8  # that tokenize prompts


class GenAiEngine(Engine):
    """Runs a model with OpenVINO GenAI's continuous batching. One thread computes all steps.

    device   the OpenVINO device
    """

    quick = True  # the threads of Entrance take the prompt
    supports = SUPPORTS

    def __init__(self, path: Path, settings: Settings, name: str = "openvino_genai"):
        self.most = settings.sequences
        self.device = settings.device
        self._context = settings.context
        self._pipeline = Pipeline(path, settings)
        self._loop = StepLoop(self._pipeline, name)
        self._entrance = Entrance(self._loop, min(self.most, _MOST_THREADS), name)

    def generate(self, prompt: Prompt, sampling: Sampling, emit: Emit) -> Generation:
        generation = GenAiGeneration(self._pipeline, sampling, emit)
        self._entrance.enter(generation, partial(self._prepare, prompt, sampling))
        return generation

    def _prepare(self, prompt: Prompt, sampling: Sampling, generation: GenAiGeneration) -> None:
        """Give a generation its tokens and its configuration. Raises CoreError(INVALID)."""
        tokens = list(prompt.tokens) or self.tokenize(prompt.text)
        room = self._context - len(tokens)
        if room < 1:
            raise PromptTooLong(
                f"the prompt has {len(tokens)} tokens, and the context of the model is {self._context} "
                "tokens, with at least one for the answer; send a shorter prompt"
            )
        if not tokens:
            raise invalid("the prompt has no tokens; send a text that is not empty")
        if (largest := max(tokens)) >= self._pipeline.tokenizer.vocabulary:
            raise invalid(
                f"the prompt has the token {largest}, and the vocabulary of the model has "
                f"{self._pipeline.tokenizer.vocabulary} tokens"
            )
        generation.prepare(tokens, generation_config(self._pipeline, sampling, room))

    def tokenize(self, text: str, special: bool = True) -> list[int]:
        return self._pipeline.tokenizer.tokens(text, special)

    def detokenize(self, tokens: Sequence[int]) -> str:
        return self._pipeline.tokenizer.text(tokens, special=True)

    def status(self) -> Status:
        waiting, running = self._loop.counts()
        if not running:
            return Status(waiting)
        metrics = self._pipeline.metrics()
        behind = min(running, max(0, metrics.requests - metrics.scheduled_requests))
        return Status(waiting + behind, running - behind, metrics.cache_usage / 100)

    def cache_bytes(self) -> int:
        """Return the bytes of the cache of keys and values after the last step."""
        return int(self._pipeline.metrics().cache_size_in_bytes)

    def close(self) -> None:
        self._entrance.close()
        self._loop.close()
