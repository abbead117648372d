"""GenerationRun: one generation of an engine, and the responses that its events become.

EngineInstance.begin ─► [GenerationRun] ─► Engine.generate ─► Event … ─► Batch.respond
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import struct
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from core.batch import Batch
from core.dtypes import BYTES, FP32, INT32, UINT32
from core.errors import CoreError, cancelled
from core.tensor import Tensor, new_tensor
from core_generate.engine import Engine, Event, Generation, Logprob
from core_generate.metrics import Measurements
from core_generate.reading import GenerateRequest
from core_generate.spans import describe_generation, describe_request, operation_of

_ONE = (1,)
_length = struct.Struct("<I").pack  # of an element of BYTES
_OF_THE_END = {"finish_reason", "stop_reason"}  # outputs whose value comes with the last response
_LOWEST = -9999.0  # what JSON has for the logarithm of 0, as in vLLM

Done = Callable[["BaseException | None"], None]


class GenerationRun:
    """One request of the task "generate". Invariants:

    1. `done` is called once, on the event loop, unless the loop is closed.
    2. After a cancellation no response is sent. The engine's events may still arrive; they are dropped.
    3. While the client reads too slowly, events wait here; once it has room, they are sent as one response.
       So a slow client holds up neither the engine nor other clients, and its events use little memory.
    """

    def __init__(
        self,
        batch: Batch,
        asked: GenerateRequest,
        engine: Engine,
        measured: Measurements,
        loop: asyncio.AbstractEventLoop,
        done: Done,
    ):
        self._batch = batch
        self._request = batch.requests[0]
        self._asked = asked
        # Whether an event with a text becomes a response at once, with no outputs but `text_output` and,
        # perhaps, `finish_reason`.
        self._plain = (
            asked.stream
            and not asked.prepend
            and asked.returns <= _OF_THE_END
            and self._request.parent is None
        )
        self._names_finish = "finish_reason" in asked.returns
        self._engine = engine
        self._measured = measured
        self._loop = loop
        self._done: Done | None = done
        self._generation: Generation | None = None
        self._over = False  # cancelled or failed, or the last response is sent
        self._first_ns = self._last_ns = 0  # of the events with tokens
        self._tokens = self._prompt_tokens = self._cached_tokens = 0
        self._logprob = 0.0  # of all tokens
        # Events that no response has yet: of a request without `stream`, or events without text.
        self._kept: list[Event] = []
        # Events that wait for the client; None while it keeps up. Under the lock.
        self._waiting: list[Event] | None = None
        self._lock = threading.Lock()

    def start(self) -> None:
        """Start the generation, unless the request is already cancelled. Any thread.

        If `Engine.generate` raises, the request ends with that error.
        """
        if self._over:
            return
        prompt = self._asked.prompt
        if prompt.images or prompt.audio:
            prompt = replace(prompt, stopped=lambda: self._over)
        try:
            generation = self._engine.generate(prompt, self._asked.sampling, self._emit)
        except BaseException as error:
            self._end(error)
            return
        self._generation = generation
        if self._over:  # cancelled meanwhile, perhaps before the line above
            generation.cancel()

    def cancel(self) -> None:
        """End a cancelled request with an error, and stop its generation. Event loop only.

        Does nothing if the request has already ended or was cancelled before.
        """
        if self._over:
            return
        self._over = True
        if self._generation is not None:
            self._generation.cancel()
        self._loop.call_soon(self._finish, cancelled())

    def token_counts(self) -> tuple[int, int]:
        """Return the tokens of the prompt, -1 until the engine reports them, and those generated so far.

        With it, a run is the cost of its request (core.costs). Any thread.
        """
        return self._prompt_tokens or -1, self._tokens

    # any thread, one call at a time ----------------------------------------

    def _emit(self, event: Event | CoreError) -> None:
        if self._over:
            return
        try:
            if isinstance(event, CoreError):
                self._end(event)
            else:
                self._take(event)
        except BaseException as error:  # the engine's thread must go on
            self._end(error)

    def _take(self, event: Event) -> None:
        text, tokens, _, finish, prompt_tokens, cached_tokens, count, _ = event
        if count or tokens:
            self._last_ns = time.monotonic_ns()
            self._first_ns = self._first_ns or self._last_ns
            self._tokens += count or len(tokens)
        if prompt_tokens:
            self._prompt_tokens, self._cached_tokens = prompt_tokens, cached_tokens
        slow = self._waiting is not None or self._request.paused
        if not self._plain or finish or not text or self._kept or slow:
            self._take_other(event, slow)
        elif self._names_finish:
            self._batch.respond(0, [text_tensor("text_output", text), _GOES_ON], final=False)
        else:
            self._batch.respond(0, [text_tensor("text_output", text)], final=False)

    def _take_other(self, event: Event, slow: bool) -> None:
        """Take an event that does not become a plain response at once.

        slow   whether events wait for the client, or it is behind
        """
        if not event.finish and (not event.text or not self._asked.stream):
            self._kept.append(event)
            return
        if self._kept:
            self._kept.append(event)
            event = merged(self._kept)
            self._kept = []
        if slow or self._request.parent is not None:
            self._take_slowly(event)
        else:
            self._respond(event)

    def _take_slowly(self, event: Event) -> None:
        """Send an event, or let it wait for the client."""
        if self._waiting is None and not self._is_behind():
            self._respond(event)
        else:
            self._wait(event)

    def _is_behind(self) -> bool:
        """Return whether the client is slow: its request, or that of an ensemble around it, is paused."""
        request = self._request
        while not request.paused:
            if request.parent is None:
                return False
            request = request.parent
        return True

    def _wait(self, event: Event) -> None:
        with self._lock:
            if self._waiting is not None:
                self._waiting.append(event)
                return
            if self._is_behind():
                self._waiting = [event]
                self._loop.call_soon_threadsafe(self._request.when_free, self._send_waiting)
                return
        self._respond(event)

    def _send_waiting(self) -> None:
        """Send the waiting events as one response, unless there are none or the request is over.

        Later events are sent at once again. Event loop only.
        """
        with self._lock:
            try:
                if not self._over and self._waiting:
                    self._respond(merged(self._waiting))
            except BaseException as error:  # the loop and its other listeners must go on
                self._end(error)
            finally:
                self._waiting = None

    def _respond(self, event: Event) -> None:
        final = bool(event.finish)
        if final:
            self._trace(event.finish)  # before the last response, after which the trace may finish
        self._batch.respond(0, self._outputs(event), final=final)
        if final:
            self._end(None)

    def _end(self, error: BaseException | None) -> None:
        self._over = True
        with contextlib.suppress(RuntimeError):  # the loop is closed: the server has ended
            self._loop.call_soon_threadsafe(self._finish, error)

    def _outputs(self, event: Event) -> list[Tensor]:
        text = event.text
        if self._asked.prepend:
            text = self._prompt_text() + text
        outputs = [text_tensor("text_output", text)]
        returns = self._asked.returns
        if not returns:
            return outputs
        self._logprob += sum(each.logprob for each in event.logprobs)
        made: dict[str, Callable[[], Tensor]] = {
            "finish_reason": lambda: text_tensor("finish_reason", event.finish or "None"),
            "cumulative_logprob": lambda: _tensor(
                "cumulative_logprob", FP32, [max(self._logprob, _LOWEST)]
            ),
            "logprobs": lambda: text_tensor("logprobs", logprobs_json(event.logprobs)),
            "num_input_tokens": lambda: _tensor("num_input_tokens", UINT32, [self._prompt_tokens]),
            "num_output_tokens": lambda: _tensor(
                "num_output_tokens", UINT32, [event.count or len(event.tokens)]
            ),
            "token_ids": lambda: _tensor("token_ids", INT32, event.tokens),
        }
        if event.finish:
            made["stop_reason"] = lambda: text_tensor("stop_reason", event.stop)
        return outputs + [make() for name, make in made.items() if name in returns]

    def _prompt_text(self) -> str:
        prompt = self._asked.prompt
        return self._engine.detokenize(prompt.tokens) if prompt.tokens else prompt.text

    def _trace(self, finish: str) -> None:
        """Describe the generation in the trace of the request, if it has one. Any thread.

        finish   of the last event; "" after an error or a cancellation
        """
        request = self._request
        if request.trace is not None:
            describe_generation(
                request.trace,
                describe_request(
                    operation_of(request), self._measured.model.name, self._asked.sampling
                ),
                finish,
                (self._prompt_tokens, self._cached_tokens, self._tokens),
                request.arrival_ns,
                self._first_ns,
            )

    # event loop ----------------------------------------------------------------

    def _finish(self, error: BaseException | None) -> None:
        done, self._done = self._done, None
        if done is None:
            return
        if error is not None:
            self._trace("")
        self._measured.ended(
            self._request.arrival_ns,
            self._first_ns,
            self._last_ns,
            self._prompt_tokens,
            self._cached_tokens,
            self._tokens,
        )
        done(error)


def merged(events: Sequence[Event]) -> Event:
    """Return one event with the texts, tokens and log probabilities of these events, at least one, in order.

    `finish` and `stop` are those of the last event, `count` is the sum; the other numbers are the largest.
    """
    last = events[-1]
    if len(events) == 1:
        return last
    return Event(
        "".join([each.text for each in events]),
        [token for each in events for token in each.tokens],
        [logprob for each in events for logprob in each.logprobs],
        last.finish,
        max(each.prompt_tokens for each in events),
        max(each.cached_tokens for each in events),
        sum(each.count or len(each.tokens) for each in events),
        last.stop,
    )


def text_tensor(name: str, text: str) -> Tensor:
    """Return a BYTES[1] tensor that holds the text in its wire form: 4 bytes of length, then UTF-8."""
    data = text.encode("utf-8", "replace")
    return new_tensor(name, BYTES, _ONE, _length(len(data)) + data, None)


_GOES_ON = text_tensor("finish_reason", "None")  # in all responses but the last


def _tensor(name: str, dtype: Any, values: Sequence[Any]) -> Tensor:
    array = np.array(values, dtype.numpy)
    return new_tensor(name, dtype, array.shape, None, array)


def logprobs_json(logprobs: Sequence[Logprob]) -> str:
    """Return the text of the output `logprobs`: a JSON list with one object for each token."""
    return json.dumps([_logprob(each, "top") for each in logprobs], ensure_ascii=False)


def _logprob(found: Logprob, top: str = "") -> dict[str, Any]:
    entry: dict[str, Any] = {
        "token": found.token,
        "text": found.text,
        "logprob": max(found.logprob, _LOWEST),
    }
    if top:
        entry[top] = [_logprob(each) for each in found.top]
    return entry
