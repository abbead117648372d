"""Letters: an engine without computation. One thread generates a token of each stream in turn."""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import numpy as np
from core_generate import (
    Emit,
    Engine,
    Prompt,
    PromptTooLong,
    Sampling,
    Status,
    StructureRefused,
)

from backend_testing.letters.json_instance import json_instance
from backend_testing.letters.stream import BOS, EOS, Stream
from core.errors import internal, invalid

_DIMENSIONS = 8
_IDLE_S = 60.0  # the thread looks again for streams after this time


class Letters(Engine):
    """An engine that continues a prompt with the letters of the alphabet, or with a fixed text. Thread-safe.

    text       text of every generation, after which it ends; "" for letters without an end
    context    largest number of tokens of prompt and generation together
    most       largest number of generations at once, which EngineInstance respects
    delay_s    seconds between two tokens of a stream
    adapters   adapter names that a prompt may use; an adapter makes all letters uppercase
    steps      number of tokens generated so far, of all streams
    """

    quick = True
    supports = frozenset(
        {each.name for each in fields(Sampling)} - {"structure"}
        | {"tokens", "images", "audio", "suffix", "adapter", "choices", "schema"}
    )

    def __init__(
        self,
        text: str = "",
        context: int = 4096,
        most: int = 256,
        delay_s: float = 0.0,
        adapters: Sequence[str] = (),
    ):
        self.most = most
        self.steps = 0
        self._text = text.encode()
        self._context = context
        self._delay_s = delay_s
        self._adapters = adapters
        self._streams: list[Stream] = []
        self._changed = threading.Condition()
        self._closed = False
        self._thread: threading.Thread | None = None

    def generate(self, prompt: Prompt, sampling: Sampling, emit: Emit) -> Stream:
        tokens = list(prompt.tokens) or self.tokenize(prompt.text)
        if wrong := [each for each in tokens if not 0 <= each <= EOS]:
            raise invalid(f"the prompt has the token {wrong[0]}, the vocabulary has 0 to {EOS}")
        if prompt.adapter and prompt.adapter not in self._adapters:
            raise invalid(
                f"there is no adapter '{prompt.adapter}', there are {list(self._adapters)}"
            )
        count = len(tokens) + len(prompt.suffix.encode()) + len(prompt.images) + len(prompt.audio)
        if count >= self._context:
            raise PromptTooLong(f"the prompt has {count} tokens, the context has {self._context}")
        script = self._script(sampling)
        room = self._context - count
        stream = Stream(tokens, count, room, script, bool(prompt.adapter), sampling, emit)
        with self._changed:
            if self._closed:
                raise internal("the engine is closed")
            self._streams.append(stream)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="letters", daemon=True)
                self._thread.start()
            self._changed.notify()
        return stream

    def _script(self, sampling: Sampling) -> bytes:
        """Return the text in UTF-8 that a generation gives instead of letters; b"" if it gives letters.

        For a structure it is one of its choices or a JSON document of its schema, else it is `text`.
        Raises StructureRefused for another structure.
        """
        structure = sampling.structure
        if structure is None:
            return self._text
        if structure.choices:
            digest = hashlib.blake2b(str(sampling.seed).encode(), digest_size=4).digest()
            number = int.from_bytes(digest, "little") if sampling.temperature else 0
            return structure.choices[number % len(structure.choices)].encode()
        if structure.schema is not None:
            return json.dumps(json_instance(structure.schema)).encode()
        raise StructureRefused("letters has no other structure than choices and schema")

    def embed(self, prompts: Sequence[Prompt]) -> tuple[Any, list[int]]:
        """Return (float32[prompts, 8], number of tokens of each prompt).

        Column i counts the tokens whose number modulo 8 is i; then each row is divided by its Euclidean norm.
        """
        lists = [list(each.tokens) or self.tokenize(each.text) for each in prompts]
        found = np.zeros((len(lists), _DIMENSIONS), np.float32)
        for row, tokens in zip(found, lists, strict=True):
            np.add.at(row, np.array(tokens) % _DIMENSIONS, 1)
            row /= np.linalg.norm(row)
        return found, list(map(len, lists))

    def rank(self, query: str, documents: Sequence[str]) -> tuple[Any, int]:
        """Return (float32[documents], number of tokens of query and documents).

        The score of a document is the fraction of the query's words that it has. A token is a byte of UTF-8.
        """
        words = set(query.split())
        shared = [len(words & set(each.split())) / max(1, len(words)) for each in documents]
        return np.array(shared, np.float32), len("".join([query, *documents]).encode())

    def tokenize(self, text: str, special: bool = True) -> list[int]:
        return [*([BOS] if special else []), *text.encode()]

    def detokenize(self, tokens: Sequence[int]) -> str:
        return bytes(each for each in tokens if each < BOS).decode(errors="replace")

    def status(self) -> Status:
        streams = [each for each in list(self._streams) if not each.over]
        room = self._context * self.most
        used = min(1.0, sum(each.used for each in streams) / room)
        return Status(running=len(streams), cache_use=used, cache_tokens=room)

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify()
            thread = self._thread
        if thread is not None:
            thread.join()
        for each in self._streams:
            each.cancel()
        self._streams = []

    def _run(self) -> None:
        while self._wait():
            for stream in list(self._streams):
                self.steps += stream.step()
            if self._delay_s:
                time.sleep(self._delay_s)

    def _wait(self) -> bool:
        """Drop the streams that are over; wait for another if none is left. Return False if closed."""
        with self._changed:
            self._streams = [each for each in self._streams if not each.over]
            while not self._streams and not self._closed:
                self._changed.wait(_IDLE_S)
            return not self._closed
