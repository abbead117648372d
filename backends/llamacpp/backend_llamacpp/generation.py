"""LlamaGeneration: one generation of llama.cpp, and the events that its chunks become.

Library.complete ─► chunk ─► [LlamaGeneration] ─► Event ─► emit
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import orjson
from core_generate import Emit, Event, Logprob, Sampling, StopStrings

from backend_llamacpp.library import Library, error_of
from core.errors import CoreError, internal, invalid

logger = logging.getLogger("core")


class LlamaGeneration:
    """A generation that runs on a thread of the engine.

    request   returns the request for llama.cpp, or raises the CoreError that refuses it; it gets what returns
              whether the generation is cancelled, and stops then
    tokens    in its context: those of the prompt, and the generated ones
    """

    def __init__(
        self,
        request: Callable[[Callable[[], bool]], dict[str, Any]],
        sampling: Sampling,
        emit: Emit,
    ):
        self.tokens = 0
        self._request = request
        self._emit = emit
        self._stops = StopStrings(sampling.stop) if sampling.stop else None
        self._alternatives = sampling.logprobs or 0
        self._over = False  # cancelled, or the last event is emitted
        self._generated = self._cached = 0

    def cancel(self) -> None:
        """Stop the generation at the next token, or after the part of the prompt that is being computed."""
        self._over = True

    def run(self, library: Library) -> None:
        """Generate and emit events until the end or a cancellation. Runs on a thread of the engine.

        Does nothing if it is cancelled already. An error of llama.cpp becomes the last event.
        """
        if self._over:
            return
        try:
            request = self._request(lambda: self._over)
            if not self._over:  # cancelled meanwhile
                library.complete(request, self._take)
        except Exception as error:  # llama.cpp refuses a request so, before its first chunk
            self._end(error if isinstance(error, CoreError) else invalid(f"llama.cpp: {error}"))
        self._end(internal("llama.cpp has ended the generation without a reason"))

    def _take(self, data: bytes) -> bool:
        """Emit the event of a chunk. Return whether the generation must end: it is cancelled, or has ended.

        A chunk that cannot be read ends it with an error. Raises nothing: llama.cpp would lose an exception.
        """
        if not self._over:
            try:
                self._read(orjson.loads(data))
            except Exception as error:
                logger.exception("the answer of llama.cpp cannot be read: %s", data[:200])
                self._end(internal(f"the answer of llama.cpp cannot be read: {error!r}"))
        return self._over

    def _end(self, last: Event | CoreError) -> None:
        if not self._over:
            self._over = True
            self._emit(last)

    def _read(self, chunk: dict[str, Any]) -> None:
        if "error" in chunk:
            self._end(error_of(chunk["error"]))
            return
        if progress := chunk.get("prompt_progress"):
            self._cached = progress["cache"]
            return
        details = chunk.get("__verbose", chunk)  # it has the form of /completion
        text, finish = details["content"], ""
        if details["stop"]:
            finish = "length" if details["stop_type"] == "limit" else "stop"
            self._cached = details["timings"]["cache_n"]
        prompt, generated = details["tokens_evaluated"], details["tokens_predicted"]
        count, self._generated = generated - self._generated, generated
        self.tokens = prompt + generated
        if self._stops is not None:
            text = self._stops.feed(text)
            if self._stops.found:
                finish = "stop"
            elif finish:
                text += self._stops.end()
        logprobs: tuple[Logprob, ...] = ()
        if found := details.get("completion_probabilities"):
            logprobs = tuple([self._logprob(each) for each in found])
        stop = "" if self._stops is None else self._stops.found
        event = Event(text, details["tokens"], logprobs, finish, prompt, self._cached, count, stop)
        if finish:
            self._end(event)
        else:
            self._emit(event)

    def _logprob(self, entry: dict[str, Any]) -> Logprob:
        """Return the log probability of a token and of its alternatives.

        The token's text comes from the same token among the alternatives. The entry's own text is used only
        if the token is not among them, because it may be the text of several tokens.
        """
        top = [
            Logprob(each["id"], each["token"], each["logprob"]) for each in entry["top_logprobs"]
        ]
        token = entry["id"]
        text = next((each.text for each in top if each.token == token), entry["token"])
        return Logprob(token, text, entry["logprob"], tuple(top[: self._alternatives]))
