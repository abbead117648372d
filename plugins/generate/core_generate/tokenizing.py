"""Tokenizer: the tokens of texts, and the texts of tokens, without a place in the queue of a model.

A request of the task "tokenize" waits in that queue behind generations that may last minutes. A frontend in
the process of the engine asks the engine instead.

tokenizer_of(name, version) ─► [Tokenizer] ─► Engine.tokenize, on threads of its own
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

import numpy as np

from core.errors import CoreError, Kind, internal, unavailable
from core_generate.engine import Engine
from core_generate.prompt_size import check_counted

_MOST_THREADS = 2  # of one model
_MOST_ASKED = 1000  # texts of one model that are tokenized or wait for it
_PART = 65_536  # tokens that are read in some milliseconds

Result = TypeVar("Result")


class Tokenizer:
    """Tokenizes with the engine of one model version, until `close`. Event loop only, except `close`.

    loop      event loop of the server
    context   tokens that the model can read, 0 if unknown
    """

    def __init__(
        self,
        name: str,
        version: int,
        engine: Engine,
        loop: asyncio.AbstractEventLoop,
        context: int = 0,
    ):
        self.key = name, version, loop
        self._name = name
        self._engine = engine
        self._context = context
        self._is_closed = False
        self._asked = 0  # texts that are tokenized or wait for it
        # Not those of other tasks: neither waits for the other. They start with the first text.
        self._threads = ThreadPoolExecutor(_MOST_THREADS, thread_name_prefix=f"{name}-tokens")
        _OPEN[id(self)] = self

    def close(self) -> None:
        """Wait for what runs; what has not begun fails. Any thread, also more than once.

        Call this before the engine is closed.
        """
        self._is_closed = True
        _OPEN.pop(id(self), None)
        self._threads.shutdown()

    async def tokenize(self, text: str, special: bool = True) -> Any:
        """Return the tokens of a text, int32[tokens]; `special` as of Engine.tokenize.

        Raises the CoreError of the engine, UNSUPPORTED if it does not tokenize, and UNAVAILABLE if the model
        is unloaded meanwhile, or if 1,000 texts wait already; PromptTooLong as `check_counted`.
        """
        check_counted(text, self._context)
        return await self._run(lambda: _array(self._engine.tokenize(text, special)))

    async def detokenize(self, tokens: Sequence[int]) -> str:
        """Return the text of tokens, ? in the place of a lone surrogate. Raises CoreError as `tokenize`."""
        return await self._run(
            lambda: self._engine.detokenize(tokens).encode(errors="replace").decode()
        )

    async def _run(self, work: Callable[[], Result]) -> Result:
        if self._asked >= _MOST_ASKED:
            raise unavailable(
                f"{_MOST_ASKED:,} texts wait for the tokenizer of model '{self._name}', which is the most: "
                "try again later"
            )
        waiting = [work]
        self._asked += 1
        try:
            return await asyncio.wrap_future(self._submit(waiting))
        except CoreError:
            raise
        except NotImplementedError as refused:
            raise CoreError(Kind.UNSUPPORTED, str(refused)) from None
        except Exception as error:
            raise internal(
                f"the engine of model '{self._name}' failed: {type(error).__name__}: {error}"
            ) from error
        finally:
            self._asked -= 1
            waiting.clear()  # the queue of the threads keeps cancelled work, but not its text

    def _submit(self, waiting: list[Callable[[], Result]]) -> Future[Result]:
        try:
            return self._threads.submit(self._begin, waiting)
        except RuntimeError:  # the threads have ended
            raise self._unloaded() from None

    def _begin(self, waiting: list[Callable[[], Result]]) -> Result:
        """Do what waits. On a thread."""
        if self._is_closed:
            raise self._unloaded()
        return waiting[0]()

    def _unloaded(self) -> CoreError:
        return unavailable(f"model '{self._name}' is unloaded")


_OPEN: dict[int, Tokenizer] = {}  # by id


def _array(tokens: Sequence[int]) -> Any:
    """Return tokens as int32[tokens]. Part by part: numpy holds the GIL while it reads a list."""
    found = np.empty(len(tokens), np.int32)
    for at in range(0, len(tokens), _PART):
        found[at : at + _PART] = tokens[at : at + _PART]
    return found


def tokenizer_of(name: str, version: int) -> Tokenizer | None:
    """Return the tokenizer of a model version of the server on whose event loop this is called.

    None for a model without an engine, or with its engine in another process, and if several models have
    this name. Such a model takes requests of the tasks "tokenize" and "detokenize".
    """
    key = name, version, asyncio.get_running_loop()
    found = [each for each in list(_OPEN.values()) if each.key == key]
    return found[0] if len(found) == 1 else None
