"""LlamaEngine: the engine of a GGUF file.

Prompt, Sampling ─► [LlamaEngine] ─► thread of the generation ─► slot of llama.cpp ─► events
"""

from __future__ import annotations

import base64
import logging
import threading
from collections.abc import Sequence
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import numpy as np
import orjson
from core_generate import Emit, Engine, Gathering, Generation, Prompt, Sampling, Status

from backend_llamacpp.generation import LlamaGeneration
from backend_llamacpp.library import Library, raise_error
from backend_llamacpp.request import completion_request
from backend_llamacpp.settings import Settings
from core.errors import CoreError, invalid

logger = logging.getLogger("core")

_MOST_AROUND = 8  # tokens that llama.cpp may add to a query and a document


class LlamaEngine(Engine):
    """Runs a model with llama.cpp.

    A generation has a thread, which waits for its tokens without the GIL. There is one for each slot, started
    when that many generations are there for the first time.
    """

    quick = True  # the thread of the slot writes the request, which takes long for a structure

    def __init__(self, file: Path, settings: Settings):
        self.most = settings.slots
        self.supports = settings.supports
        self._settings = settings
        self._library = Library(file, settings)
        self._waiting: SimpleQueue[LlamaGeneration | None] = SimpleQueue()  # None ends a thread
        self._gathering = Gathering(self._waiting.put)
        self._lock = threading.Lock()  # guards the fields below
        self._threads: list[threading.Thread] = []
        self._generations: set[LlamaGeneration] = set()
        # Tokens that llama.cpp adds to a query and a document; known after the first long pair.
        self._around_pair: int | None = None

    def generate(self, prompt: Prompt, sampling: Sampling, emit: Emit) -> Generation:
        generation = LlamaGeneration(
            lambda stopped: completion_request(
                prompt, sampling, self._settings, self._library.batch, stopped
            ),
            sampling,
            emit,
        )
        with self._lock:
            if len(self._threads) < min(len(self._generations) + 1, self.most):
                self._start_thread()
            idle = not self._generations
            self._generations.add(generation)
        self._gathering.add(generation, idle)
        return generation

    def _start_thread(self) -> None:
        name = f"llamacpp {len(self._threads)}"
        thread = threading.Thread(target=self._run, name=name, daemon=True)
        thread.start()
        self._threads.append(thread)

    def _run(self) -> None:
        while (generation := self._waiting.get()) is not None:
            try:
                generation.run(self._library)
            except Exception:  # the thread must go on
                logger.exception("a generation of llama.cpp has failed")
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
        """Return FP32[documents], as the model's classifier gives them, and the tokens of all pairs.

        Raises CoreError(INVALID) for a query and a document that are together longer than the context, and
        llama.cpp's error as a CoreError.
        """
        self._check_pairs(query, documents)
        return self._rank(query, documents)

    def _rank(self, query: str, documents: Sequence[str]) -> tuple[Any, int]:
        self._library.check([query, *documents])
        request = {"query": query, "documents": list(documents)}
        answer = self._library.rank(orjson.dumps(request))
        raise_error(answer)
        scores = np.empty(len(documents), np.float32)
        for row in answer["results"]:
            scores[row["index"]] = row["relevance_score"]
        return scores, answer["usage"]["prompt_tokens"]

    def tokenize(self, text: str, special: bool = True) -> list[int]:
        return self._tokens(text, special, True)

    def _tokens(self, content: str | list[str], special: bool, parse_special: bool) -> list[int]:
        """Return the tokens of a text, or of several, one behind the other."""
        self._library.check(content)
        document = {"content": content, "add_special": special, "parse_special": parse_special}
        found: list[int] = self._library.call("/tokenize", document)["tokens"]
        return found

    def detokenize(self, tokens: Sequence[int]) -> str:
        try:
            return str(self._library.call("/detokenize", {"tokens": list(tokens)})["content"])
        except CoreError as error:  # it has no other reason to fail
            raise invalid(
                f"the tokens have no text, expected numbers of the vocabulary: {error}"
            ) from None

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
        for _ in self._threads:
            self._waiting.put(None)
        for thread in self._threads:
            thread.join()
        self._library.close()

    def _check_length(self, tokens: int) -> None:
        if tokens > self._settings.context:
            raise invalid(
                f"the text has {tokens} tokens, and the context of the model is {self._settings.context} "
                "tokens; send a shorter text, or load the model with a larger parameter 'context'"
            )

    def _check_pairs(self, query: str, documents: Sequence[str]) -> None:
        context, template = self._settings.context, self._settings.rank_template
        around = len(query.encode()) + max(len(template.encode()), _MOST_AROUND)
        for number, document in enumerate(documents):
            if around + len(document.encode()) <= context:  # a token is at least one byte
                continue
            if (tokens := self._pair_length(query, document)) > context:
                raise invalid(
                    f"the query and document {number} have {tokens} tokens together, and the context of the "
                    f"model is {context} tokens; send shorter texts, or load the model with a larger "
                    "parameter 'context'"
                )

    def _pair_length(self, query: str, document: str) -> int:
        """Return how many tokens llama.cpp makes of a query and a document."""
        if template := self._settings.rank_template:
            text = template.replace("{query}", query).replace("{document}", document)
            return len(self.tokenize(text, special=False))
        if self._around_pair is None:
            self._around_pair = self._rank("", [""])[1]
        return self._around_pair + len(self._tokens([query, document], False, False))
