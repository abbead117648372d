"""TokenText: text of tokens that arrive one after the other, for engines that report tokens only."""

from __future__ import annotations

from collections.abc import Callable, Sequence

_REPLACEMENT = "\ufffd"  # what tokenizers write for bytes that are no character
_MOST_HELD = 3  # bytes of a character that lacks its last one
# Tokens that are detokenized again with the next ones: some tokenizers drop a space before the first.
_KEPT = 4
_MOST_KEPT = 12
_MOST_WAITING = 64  # tokens: a text that goes on without a complete character is given as it is


class TokenText:
    """Makes text of tokens. A character of several tokens appears with the last of them. Not thread-safe.

    detokenize   tokens → text, with U+FFFD for each byte, or for all bytes, of an incomplete character
    """

    def __init__(self, detokenize: Callable[[Sequence[int]], str]):
        self._detokenize = detokenize
        self._tokens: list[int] = []
        self._text = ""  # of these tokens
        self._given = 0  # characters of it that were returned

    def feed(self, tokens: Sequence[int]) -> str:
        """Add tokens. Return the new characters, except an incomplete one at the end of the text.

        That one waits for its other tokens; once more than 64 tokens wait, it is returned as U+FFFD.
        """
        self._tokens.extend(tokens)
        self._text = self._detokenize(self._tokens)
        held = len(self._text) - len(self._text.rstrip(_REPLACEMENT))
        if len(self._tokens) > _MOST_WAITING:
            held = 0
        complete = len(self._text) - min(held, _MOST_HELD)
        found = self._text[self._given : complete]
        self._given = max(self._given, complete)
        if not held and len(self._tokens) > _MOST_KEPT:
            del self._tokens[:-_KEPT]
            self._text = self._detokenize(self._tokens)
            self._given = len(self._text)
        return found

    def end(self) -> str:
        """End the text. Return what was held back: the rest of a character that is not complete."""
        rest = self._text[self._given :]
        self._given = len(self._text)
        return rest
