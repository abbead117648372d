"""VllmEngine: the engine of a model that vLLM runs.

Prompt, Sampling ─► [VllmEngine] ─► AsyncLLM.generate ─► VllmGeneration ─► events
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from core_generate import Emit, Engine, Generation, Prompt, PromptTooLong, Sampling, Status
from vllm.inputs.engine import tokens_input
from vllm.lora.request import LoRARequest
from vllm.sampling_params import RequestOutputKind, SamplingParams, StructuredOutputsParams

from backend_vllm.failures import failure
from backend_vllm.generation import VllmGeneration
from backend_vllm.pooling import Pooling
from backend_vllm.request import sampling_values, structure_values
from backend_vllm.runner import EngineRunner
from backend_vllm.settings import Settings
from backend_vllm.tokenizer import Tokenizer
from core.errors import invalid


class VllmEngine(Engine):
    """Runs a model with vLLM, which batches all generations itself.

    runner    the engine of vLLM
    on_death  called on the thread of the engine for each generation that ends after the death of vLLM
    """

    def __init__(self, runner: EngineRunner, settings: Settings):
        config = runner.config
        self.runner = runner
        self.most = config.scheduler_config.max_num_seqs
        self.supports = settings.supports
        self.on_death: Callable[[], None] = _nothing
        self._context: int = config.model_config.max_model_len
        self._defaults: Mapping[str, Any] = config.model_config.get_diff_sampling_param()
        self._tokenizer = Tokenizer(
            runner.llm.get_tokenizer(), config.model_config.get_vocab_size()
        )
        self._pooling = Pooling(runner, self._tokenizer)
        self._adapters = {
            name: LoRARequest(name, number, place)
            for number, (name, place) in enumerate(settings.adapters.items(), 1)
        }
        self._numbers = itertools.count(1)
        self._running: set[VllmGeneration] = set()

    def generate(self, prompt: Prompt, sampling: Sampling, emit: Emit) -> Generation:
        adapter = self._adapter(prompt.adapter)
        try:
            tokens = list(prompt.tokens) or self._tokenizer.prompt(prompt.text)
            self._check(tokens, self._context - 1)
            params = self._params(sampling, self._context - len(tokens))
        except Exception as error:
            raise failure(error) from error
        begin = partial(
            self.runner.llm.generate,
            tokens_input(tokens),
            params,
            f"{next(self._numbers)}",
            lora_request=adapter,
        )
        generation = VllmGeneration(emit, sampling.logprobs or 0, self.runner.loop, self._ended)
        self._running.add(generation)
        self.runner.soon(partial(generation.start, begin))
        return generation

    def embed(self, prompts: Sequence[Prompt]) -> tuple[Any, list[int]]:
        tokens = [list(each.tokens) or self._tokenizer.prompt(each.text) for each in prompts]
        for each in tokens:
            self._check(each, self._context)
        return self._pooling.embeddings(tokens)

    def rank(self, query: str, documents: Sequence[str]) -> tuple[Any, int]:
        return self._pooling.scores(query, documents, partial(self._check, most=self._context))

    def tokenize(self, text: str, special: bool = True) -> list[int]:
        return self._tokenizer.tokens(text, special)

    def detokenize(self, tokens: Sequence[int]) -> str:
        return self._tokenizer.text(tokens)

    def status(self) -> Status:
        counts, begun = self.runner.counts, len(self._running)
        waiting = min(begun, counts.waiting)
        capacity = self.runner.config.cache_config.kv_cache_size_tokens or 0
        return Status(waiting, begun - waiting, counts.cache_use, capacity)

    def close(self) -> None:
        for each in list(self._running):
            each.cancel()
        self.runner.close()

    def _adapter(self, name: str) -> Any:
        if name and name not in self._adapters:
            known = ", ".join(self._adapters) or "none"
            raise invalid(f"the LoRA adapter '{name}' is unknown, the model has {known}")
        return self._adapters.get(name)

    def _check(self, tokens: Sequence[int], most: int) -> None:
        """Raise CoreError(INVALID) for a text without tokens or with too many, or with an unknown token."""
        if not tokens:
            raise invalid("the prompt has no token: send a text that is not empty")
        self._tokenizer.check(tokens)
        if len(tokens) > most:
            raise PromptTooLong(
                f"the prompt has {len(tokens)} tokens, and the context of the model is {self._context} "
                "tokens, prompt and answer together; send a shorter prompt, or load the model with a larger "
                "'max_model_len' in model.json"
            )

    def _params(self, sampling: Sampling, room: int) -> Any:
        """Return the SamplingParams of a request. Raises an exception of vLLM for those that it refuses.

        room   tokens that the context has left
        """
        params = SamplingParams(
            **sampling_values(sampling, room, self._defaults),
            output_kind=RequestOutputKind.DELTA,
            skip_clone=True,
        )
        if sampling.structure is not None:
            values = structure_values(sampling.structure)
            params.structured_outputs = StructuredOutputsParams(**values)
            # Here, on the thread of the request: a grammar must not hold up the event loop of the engine.
            config = self.runner.config
            params.verify(
                config.model_config,
                config.speculative_config,
                config.structured_outputs_config,
                self.runner.llm.tokenizer,
            )
        return params

    def _ended(self, generation: VllmGeneration) -> None:
        self._running.discard(generation)
        if not self._running:
            self.runner.counts.rest()
        if not self.runner.is_alive:
            self.on_death()


def _nothing() -> None:
    """Do nothing."""
