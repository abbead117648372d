"""Entrance: makes generations ready for the loop of steps.

GenAiEngine.generate ─► [Entrance] ─► StepLoop. Threads tokenize the prompts and compile structures.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from core_generate import Gathering

from backend_openvino_genai.generation import GenAiGeneration
from backend_openvino_genai.loop import StepLoop
from core.errors import CoreError, internal

Prepare = Callable[[GenAiGeneration], None]


class Entrance:
    """Prepares generations, several at once, and starts them. Those for an idle engine begin together.

    loop      gets each generation, also one that has failed or is cancelled meanwhile
    threads   that prepare
    """

    def __init__(self, loop: StepLoop, threads: int, name: str):
        self._loop = loop
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix=f"{name} prompts")
        self._gathering: Gathering[Callable[[], None]] = Gathering(self._submit)

    def enter(self, generation: GenAiGeneration, prepare: Prepare) -> None:
        """Prepare a generation on a thread, then start it. Returns at once; any thread.

        prepare   what it raises becomes the last event of the generation
        """
        self._gathering.add(partial(self._prepare, generation, prepare), self._loop.announce())

    def close(self) -> None:
        """Wait until what has entered is started. Called when nothing more enters."""
        self._threads.shutdown()

    def _submit(self, task: Callable[[], None]) -> None:
        with contextlib.suppress(RuntimeError):  # closed: what was held is cancelled
            self._threads.submit(task)

    def _prepare(self, generation: GenAiGeneration, prepare: Prepare) -> None:
        try:
            if not generation.over:
                prepare(generation)
        except CoreError as error:
            generation.fail(error)
        except Exception as error:
            generation.fail(internal(f"OpenVINO GenAI cannot take the prompt: {error}"))
        finally:
            self._loop.start(generation)
