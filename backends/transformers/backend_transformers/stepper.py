"""Stepper: the thread that computes all generations, one token of each at a time.

waiting ─► prompt, in parts ─► [Stepper] ─► a step of all rows ─► the next token of each
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from typing import Any

import torch

from backend_transformers.generation import TextGeneration
from backend_transformers.rows import CausalModel, Rows, new_cache
from core.errors import internal

logger = logging.getLogger("core")


class Stepper:
    """Computes generations. Between two steps, it reads at most `batch` tokens of new prompts.

    most      rows of the batch
    threads   threads of an operation
    rows      the batch, which only the thread changes
    """

    def __init__(self, model: CausalModel, most: int, batch: int, threads: int):
        self.rows = Rows(model)
        self._model = model
        self._most = most
        self._batch = batch
        self._threads = threads
        self._waiting: deque[TextGeneration] = deque()  # without all of their prompts computed
        self._running: list[TextGeneration] = []  # in the order of the rows; written by the thread
        self._changed = threading.Condition()
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="transformers", daemon=True)
        self._thread.start()

    def add(self, generation: TextGeneration) -> None:
        """Start a generation. Any thread. Raises CoreError(INTERNAL) after `close`."""
        with self._changed:
            if self._closed:
                raise internal("the engine is closed")
            self._waiting.append(generation)
            self._changed.notify()

    def generations(self) -> tuple[list[TextGeneration], list[TextGeneration]]:
        """Return those that wait and those that run, without cancelled ones. Any thread."""
        with self._changed:
            waiting, running = list(self._waiting), list(self._running)
        return [each for each in waiting if not each.over], [
            each for each in running if not each.over
        ]

    def close(self) -> None:
        """End all generations and the thread."""
        with self._changed:
            self._closed = True
            for each in (*self._waiting, *self._running):
                each.cancel()
            self._changed.notify()
        self._thread.join()

    # on the thread ----------------------------------------------------------

    def _run(self) -> None:
        torch.set_num_threads(self._threads)  # OpenMP has a number per calling thread
        with torch.inference_mode():
            while self._wait():
                try:
                    self._read_prompts()
                    self._step()
                except Exception as error:
                    logger.exception("transformers: a step has failed")
                    self._fail(error)
        self.rows.clear()

    def _wait(self) -> bool:
        """Wait until there is something to compute. Return False once the engine is closed."""
        self._drop()
        with self._changed:
            while not self._closed and not self._waiting and not self._running:
                self._changed.wait()
            return not self._closed

    def _drop(self) -> None:
        """Remove the generations that are over."""
        kept = [i for i, each in enumerate(self._running) if not each.over]
        if len(kept) < len(self._running):
            self.rows.keep(kept)
            with self._changed:
                self._running = [self._running[i] for i in kept]

    def _read_prompts(self) -> None:
        left = self._batch
        while left > 0 and self._waiting and len(self._running) < self._most:
            generation = self._waiting[0]
            if not generation.over:
                begin = generation.read
                try:
                    logits = self._read(generation, left)
                except Exception as error:
                    generation.fail(error)
                else:
                    left -= generation.read - begin
                    if generation.read < len(generation.prompt):
                        continue
                    self._join(generation, logits)
            with self._changed:
                self._waiting.popleft()

    def _read(self, generation: TextGeneration, most: int) -> Any:
        """Compute the next part of a prompt. Return the logits after it."""
        if generation.cache is None:
            generation.cache = new_cache()
        sounds, generation.sounds = generation.sounds, {}
        if sounds:  # the model reads all their places at once
            most = len(generation.prompt)
        part = generation.prompt[generation.read : generation.read + most]
        logits = self._model.read(part, generation.cache, sounds)
        generation.read += len(part)
        return logits[0]

    def _join(self, generation: TextGeneration, logits: Any) -> None:
        """Make a generation a row, and choose its first token."""
        generation.go_on(logits, int(logits.argmax()))
        if not generation.over:
            self.rows.join(generation.cache)
            with self._changed:
                self._running.append(generation)
        generation.cache = None

    def _step(self) -> None:
        self._drop()
        if not self._running:
            return
        logits = self.rows.step([each.last for each in self._running])
        for generation, row, likely in zip(
            self._running, logits, logits.argmax(-1).tolist(), strict=True
        ):
            generation.go_on(row, likely)

    def _fail(self, error: Exception) -> None:
        """End all rows with an error: their cache may have half of a step."""
        for each in self._running:
            each.fail(error)
        self.rows.clear()
        with self._changed:
            self._running = []
