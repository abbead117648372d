"""LlamaEngine: the engine of a GGUF file.

Prompt, Sampling ─► [LlamaEngine] ─► thread of the generation ─► slot of llama.cpp ─► events
"""

from __future__ import annotations

import base64
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import orjson
from core_generate import Emit, Engine, Generation, Prompt, Sampling, Status

from backend_llamacpp.generation import LlamaGeneration
from backend_llamacpp.library import Library, raise_error
from backend_llamacpp.request import completion_request
from backend_llamacpp.settings import Settings
from core.errors import invalid


class LlamaEngine(Engine):
    """Runs a model with llama.cpp. Each slot has a thread, which waits for its tokens without the GIL."""

    quick = True  # the thread of the slot writes the request, which takes long for a structure

    def __init__(self, file: Path, settings: Settings):
        self.most = settings.slots
        self.supports = settings.supports
        self._settings = settings
        self._library = Library(file, settings)
        self._threads = ThreadPoolExecutor(settings.slots, thread_name_prefix="llamacpp")
        self._generations: set[LlamaGeneration] = set()
        self._lock = threading.Lock()

    def generate(self, prompt: Prompt, sampling: Sampling, emit: Emit) -> Generation:
        generation = LlamaGeneration(
            lambda: completion_request(prompt, sampling, self._settings), sampling, emit
        )
        with self._lock:
            self._generations.add(generation)
        self._threads.submit(self._run, generation)
        return generation

    def _run(self, generation: LlamaGeneration) -> None:
        try:
            generation.run(self._library)
        finally:
            with self._lock:
                self._generations.discard(generation)

    def embed(self, prompts: Sequence[Prompt]) -> tuple[Any, list[int]]:
        """Return FP32[prompts, dimensions], and how many tokens each prompt has.

        Raises CoreError(INVALID) for a prompt longer than the context, and llama.cpp's error as a CoreError.
        """
        tokens = [list(each.tokens) or self.tokenize(each.text) for each in prompts]
        for each in tokens:
            self._check_length(len(each))
        request = {"input": tokens, "encoding_format": "base64"}
        answer = self._library.embed(orjson.dumps(request))
        raise_error(answer)
        rows = sorted(answer["data"], key=lambda row: row["index"])
        found = [np.frombuffer(base64.b64decode(row["embedding"]), np.float32) for row in rows]
        return np.stack(found), [len(each) for each in tokens]

    def rank(self, query: str, documents: Sequence[str]) -> tuple[Any, int]:
        request = {"query": query, "documents": list(documents)}
        answer = self._library.rank(orjson.dumps(request))
        raise_error(answer)
        scores = np.empty(len(documents), np.float32)
        for row in answer["results"]:
            scores[row["index"]] = row["relevance_score"]
        return scores, answer["usage"]["prompt_tokens"]

    def tokenize(self, text: str, special: bool = True) -> list[int]:
        document = {"content": text, "add_special": special, "parse_special": True}
        found: list[int] = self._library.call("/tokenize", document)["tokens"]
        return found

    def detokenize(self, tokens: Sequence[int]) -> str:
        return str(self._library.call("/detokenize", {"tokens": list(tokens)})["content"])

    def status(self) -> Status:
        with self._lock:
            found = list(self._generations)
        capacity = self._settings.context * self._settings.slots
        running = min(len(found), self.most)
        used = sum(each.tokens for each in found) / capacity
        return Status(len(found) - running, running, used, capacity)

    def close(self) -> None:
        with self._lock:
            for each in self._generations:
                each.cancel()
        self._threads.shutdown()
        self._library.close()

    def _check_length(self, tokens: int) -> None:
        if tokens > self._settings.context:
            raise invalid(
                f"the text has {tokens} tokens, and the context of the model is {self._settings.context} "
                "tokens; send a shorter text, or load the model with a larger parameter 'context'"
            )
