"""The choices of a completion: pieces of text ─► events, or the choice of a whole response."""

from __future__ import annotations

from typing import Any

import orjson

from frontend_openai.events import Chunks, Usage, completion_logprobs, stopped_by
from frontend_openai.pieces import Piece, TokenLogprob


class CompletionEvents:
    """One choice of a stream.

    prompt     number of its prompt, for the usage
    echo       text that comes before that of the model
    logprobs   alternatives of each token; None for no logprobs
    """

    def __init__(
        self, chunks: Chunks, index: int, prompt: int, usage: Usage, echo: str, logprobs: int | None
    ):
        self._chunks = chunks
        self._index = index
        self._prompt = prompt
        self._usage = usage
        self._echo = echo
        self._offset = len(echo)
        self._logprobs = logprobs
        self._finish = self._stop = ""
        self._before, self._behind = chunks.around(
            index, b'"text":', b',"logprobs":null,"finish_reason":null'
        )

    @property
    def around(self) -> tuple[bytes, bytes] | None:
        """Return the parts of an event around its text; None for logprobs, and before the echo is sent."""
        return None if self._echo or self._logprobs is not None else (self._before, self._behind)

    def take(self, piece: Piece) -> bytes:
        """Take a piece of the text; return its events."""
        self._usage.count(self._prompt, piece)
        self._finish = piece.finish or self._finish
        self._stop = piece.stop
        text = piece.text
        if self._echo:
            text, self._echo = self._echo + text, ""
        if self._logprobs is not None and piece.logprobs:
            logprobs = completion_logprobs(piece.logprobs, self._offset, self._logprobs)
            self._offset += sum(len(each.text) for each in piece.logprobs)
            return self._event(text, logprobs)
        return self._before + orjson.dumps(text) + self._behind if text else b""

    def end(self) -> bytes:
        """Return the last event."""
        echo, self._echo = self._echo, ""
        return self._event(echo, None, self._finish or "stop")

    def _event(self, text: str, logprobs: dict[str, Any] | None, finish: str = "") -> bytes:
        return self._chunks.event(
            {
                "index": self._index,
                "text": text,
                "logprobs": logprobs,
                "finish_reason": finish or None,
                **stopped_by(self._stop),
            }
        )


class CompletionText:
    """One choice of a whole response; arguments as of CompletionEvents.

    score   logarithm of the probability of its text, -inf if the model does not say it
    """

    around = None

    def __init__(self, prompt: int, usage: Usage, echo: str, logprobs: int | None):
        self.score = float("-inf")
        self._prompt = prompt
        self._usage = usage
        self._text = [echo]
        self._offset = len(echo)
        self._logprobs = logprobs
        self._entries: list[TokenLogprob] = []
        self._finish = self._stop = ""

    def take(self, piece: Piece) -> bytes:
        """Take a piece of the text; return no events."""
        self._usage.count(self._prompt, piece)
        self._finish = piece.finish or self._finish
        self._stop = piece.stop
        self._text.append(piece.text)
        self._entries += piece.logprobs or ()
        if piece.score is not None:
            self.score = piece.score
        return b""

    def end(self) -> bytes:
        """Take the end of the text."""
        return b""

    def members(self, index: int) -> dict[str, Any]:
        """Return the choice of the response, after the end."""
        most = self._logprobs
        return {
            "index": index,
            "text": "".join(self._text),
            "logprobs": None
            if most is None
            else completion_logprobs(self._entries, self._offset, most),
            "finish_reason": self._finish or "stop",
            **stopped_by(self._stop),
        }
