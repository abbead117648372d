"""StepLoop: the thread that computes the steps of a pipeline.

Entrance ─► [StepLoop] ─► Pipeline.step ─► GenAiGeneration.read
"""

from __future__ import annotations

import logging
import threading
from collections import deque

from backend_openvino_genai.generation import GenAiGeneration
from backend_openvino_genai.loading import reason
from backend_openvino_genai.pipeline import Pipeline
from core.errors import internal

logger = logging.getLogger("core")

MOST_S = 0.01  # for which an idle pipeline waits for generations that are announced


class StepLoop:
    """Computes steps while there are generations, and waits while there are none. Invariants:

    1. Only its thread adds generations to the pipeline, drops them, and calls `step`: the pipeline looks for
       known prefixes in its cache while a generation is added, which must not happen during a step.
    2. A cancelled generation is dropped before the next step.
    3. Each generation is announced, and started later. So those that reach an idle pipeline together share
       its first step: one that comes during a step waits for its end.
    """

    def __init__(self, pipeline: Pipeline, name: str):
        self._pipeline = pipeline
        self._changed = threading.Condition()  # guards the fields below
        self._new: deque[GenAiGeneration] = deque()
        self._announced = 0  # generations that are not started yet
        self._closed = False
        # Written by the thread only, each time as a new list.
        self._running: list[GenAiGeneration] = []
        self._thread = threading.Thread(target=self._run, name=f"{name} steps", daemon=True)
        self._thread.start()

    def announce(self) -> bool:
        """Count a generation that will start, and return whether nothing runs or starts yet. Any thread."""
        with self._changed:
            idle = not (self._announced or self._new or self._running)
            self._announced += 1
        return idle

    def start(self, generation: GenAiGeneration) -> None:
        """Begin an announced generation before the next step, unless it is over. Any thread."""
        with self._changed:
            self._announced -= 1
            self._new.append(generation)
            if len(self._new) == 1 or not self._announced:
                self._changed.notify()

    def counts(self) -> tuple[int, int]:
        """Return how many generations wait for the next step, and how many are in the pipeline."""
        with self._changed:
            waiting = self._announced + sum(not each.over for each in self._new)
        return waiting, sum(not each.over for each in self._running)

    def close(self) -> None:
        """Cancel all generations, and wait until the thread has ended, which takes one step at most."""
        with self._changed:
            self._closed = True
            for each in (*self._new, *self._running):
                each.cancel()
            self._changed.notify()
        self._thread.join()

    def _run(self) -> None:
        while (new := self._wait()) is not None:
            for each in new:
                if not each.over:
                    each.begin()
            self._running = [*self._running, *new]
            self._drop()
            self._step()
            self._drop()
        self._drop()
        self._step()  # it frees the memory of what was dropped

    def _step(self) -> None:
        """Compute a step, and emit its tokens. If it fails, all generations end with its error."""
        try:
            if self._pipeline.is_busy():
                self._pipeline.step()
            for each in self._running:
                each.read()
        except Exception as error:
            logger.exception("a step of OpenVINO GenAI has failed")
            for each in self._running:
                each.fail(internal(f"a step of OpenVINO GenAI has failed: {reason(error)}"))

    def _wait(self) -> list[GenAiGeneration] | None:
        """Return the new generations, once there are new or running ones; None if the loop is closed."""
        with self._changed:
            while not (self._new or self._running or self._closed):
                self._changed.wait()
            if not self._running:
                self._changed.wait_for(lambda: self._closed or not self._announced, MOST_S)
            new = list(self._new)
            self._new.clear()
            return None if self._closed else new

    def _drop(self) -> None:
        """Drop the generations that are over."""
        running = []
        for each in self._running:
            if each.over:
                each.drop()
            else:
                running.append(each)
        self._running = running
