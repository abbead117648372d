"""VllmGeneration: one generation of vLLM, and the events that its outputs become.

AsyncLLM.generate ─► RequestOutput ─► [VllmGeneration] ─► Event ─► emit
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing, suppress
from typing import Any

from core_generate import Emit, Event, Logprob

from backend_vllm.failures import failure, finished
from core.errors import CoreError

_LOWEST = -9999.0  # what JSON has for the logarithm of 0, as in vLLM


class VllmGeneration:
    """A generation. All methods but `cancel` run on the event loop of the engine.

    loop      that event loop
    ended     called once, when vLLM computes nothing of it any more
    """

    def __init__(
        self,
        emit: Emit,
        alternatives: int,
        loop: asyncio.AbstractEventLoop,
        ended: Callable[[VllmGeneration], None],
    ):
        self._emit = emit
        self._alternatives = alternatives
        self._loop = loop
        self._ended = ended
        self._task: asyncio.Task[None] | None = None
        self._over = False  # cancelled, or the last event is emitted

    def cancel(self) -> None:
        """Abort the request in vLLM, and emit nothing more. Any thread."""
        if not self._over:
            self._over = True
            with suppress(RuntimeError):  # the loop is closed: the engine has ended
                self._loop.call_soon_threadsafe(self._stop)

    def start(self, begin: Callable[[], AsyncGenerator[Any, None]]) -> None:
        """Start the task that takes the outputs of `begin`, unless it is cancelled already."""
        if self._over:
            self._ended(self)
            return
        self._task = self._loop.create_task(self._run(begin))

    def fail(self, error: CoreError) -> None:
        """Emit the error as the last event; nothing if the generation is over."""
        if not self._over:
            self._over = True
            self._emit(error)

    def _stop(self) -> None:
        # vLLM aborts a request whose task is cancelled.
        if self._task is not None:
            self._task.cancel()

    async def _run(self, begin: Callable[[], AsyncGenerator[Any, None]]) -> None:
        try:
            async with aclosing(begin()) as outputs:
                async for output in outputs:
                    if self._over:
                        return
                    self._take(output)
        except asyncio.CancelledError:
            return
        except BaseException as error:
            self.fail(failure(error))
        finally:
            self._ended(self)

    def _take(self, output: Any) -> None:
        part = output.outputs[0]
        finish: str | CoreError = ""
        if output.finished:
            finish = finished(part.finish_reason or "stop")
        if isinstance(finish, CoreError):
            self.fail(finish)
            return
        tokens = tuple(part.token_ids)
        logprobs: tuple[Logprob, ...] = ()
        if part.logprobs:
            pairs = zip(tokens, part.logprobs, strict=False)
            logprobs = tuple([self._logprob(token, found) for token, found in pairs])
        event = Event(
            part.text,
            tokens,
            logprobs,
            finish,
            len(output.prompt_token_ids or ()),
            output.num_cached_tokens or 0,
            len(tokens),
            part.stop_reason if finish and isinstance(part.stop_reason, str) else "",
        )
        self._over = self._over or bool(finish)
        self._emit(event)

    def _logprob(self, token: int, found: Mapping[int, Any]) -> Logprob:
        """Return the log probability of a token.

        found   the token itself and its alternatives, each with `logprob`, `rank` and `decoded_token`
        """
        ranked = sorted(found.items(), key=lambda each: each[1].rank or 0)[: self._alternatives]
        top = tuple([_entry(number, each) for number, each in ranked])
        return _entry(token, found[token])._replace(top=top)


def _entry(token: int, found: Any) -> Logprob:
    return Logprob(token, found.decoded_token or "", max(_LOWEST, min(0.0, found.logprob)))
