"""Answers of Anthropic's messages and OpenAI's Responses: pieces of text ─► events, or a whole answer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

from core_generate.chat import Content
from core_generate.chat import Piece as Part
from core_generate.chat.anthropic_events import sse

from frontend_openai.chat_choice import Parser
from frontend_openai.events import Usage
from frontend_openai.pieces import Piece


class EventMaker(Protocol):
    """Makes the events of one stream (MessageEvents and ResponseEvents of core_generate.chat).

    around   what the event of a further text has before and behind it; None if `feed` must make the event
    """

    @property
    def around(self) -> tuple[bytes, bytes] | None: ...
    def begin(self) -> list[dict[str, Any]]: ...
    def feed(self, pieces: Iterable[Part]) -> list[dict[str, Any]]: ...


class AnswerEvents:
    """The answer of a stream.

    parser   None if its text is nothing but content
    ending   returns the last events, of "stop" or "length" and the stop string that has ended the text
    """

    def __init__(
        self,
        maker: EventMaker,
        usage: Usage,
        parser: Parser | None,
        ending: Callable[[str, str | None], list[dict[str, Any]]],
    ):
        self._maker = maker
        self._usage = usage
        self._parser = parser
        self._ending = ending
        self._finish = self._stop = ""
        self._begun = False

    @property
    def around(self) -> tuple[bytes, bytes] | None:
        """Return the parts of an event around its text, within a text; None if texts are parsed."""
        return self._maker.around if self._parser is None else None

    def take(self, piece: Piece) -> bytes:
        """Take a piece of the text; return its events."""
        self._usage.count(0, piece)
        self._finish = piece.finish or self._finish
        self._stop = piece.stop
        return _written([*self._begin(), *self._maker.feed(_parts(self._parser, piece.text))])

    def end(self) -> bytes:
        """Return the last events."""
        rest = self._parser.end() if self._parser is not None else ()
        events = [*self._begin(), *self._maker.feed(rest)]
        return _written([*events, *self._ending(self._finish or "stop", self._stop or None)])

    def _begin(self) -> list[dict[str, Any]]:
        if self._begun:
            return []
        self._begun = True
        return self._maker.begin()


class WholeAnswer:
    """The answer of a whole response; arguments as of AnswerEvents.

    parts    of the text so far
    finish   "stop" or "length", after the end
    stop     the stop string that has ended the text; None if none has, or the model does not say it
    """

    around = None

    def __init__(self, usage: Usage, parser: Parser | None):
        self._usage = usage
        self._parser = parser
        self.parts: list[Part] = []
        self.finish = "stop"
        self.stop: str | None = None

    def take(self, piece: Piece) -> bytes:
        """Take a piece of the text; return no events."""
        self._usage.count(0, piece)
        self.finish = piece.finish or self.finish
        self.stop = piece.stop or None
        self.parts += _parts(self._parser, piece.text)
        return b""

    def end(self) -> bytes:
        """Take the end of the text."""
        if self._parser is not None:
            self.parts += self._parser.end()
        return b""


def _parts(parser: Parser | None, text: str) -> Sequence[Part]:
    if not text:
        return ()
    return [Content(text)] if parser is None else parser.feed(text)


def _written(events: Iterable[dict[str, Any]]) -> bytes:
    return b"".join(map(sse, events))
