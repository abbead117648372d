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
    pieces       token → its text behind other text, learnt on the way, so that a token is detokenized only
                 once; generations of one model share it. None: it is of this text alone
    """

    def __init__(
        self, detokenize: Callable[[Sequence[int]], str], pieces: dict[int, str] | None = None
    ):
        self._detokenize = detokenize
        self._pieces = {} if pieces is None else pieces
        self._tokens: list[int] = []
        self._text = ""  # of these tokens, unless it is outdated
        self._given = 0  # characters of it that were returned
        self._outdated = False  # _text lacks the last tokens, whose texts were known and are given
        self._follows_text = False  # what comes next follows a text of complete characters

    def feed(self, tokens: Sequence[int]) -> str:
        """Add tokens. Return the new characters, except an incomplete one at the end of the text.

        That one waits for its other tokens; once more than 64 tokens wait, it is returned as U+FFFD.
        """
        if self._follows_text and len(tokens) == 1:
            piece = self._pieces.get(tokens[0])
            if piece is not None:
                self._tokens.append(tokens[0])
                self._outdated = True
                if len(self._tokens) > _MOST_KEPT:
                    del self._tokens[:-_KEPT]
                return piece
        return self._detokenized(tokens)

    def end(self) -> str:
        """End the text. Return what was held back: the rest of a character that is not complete."""
        if self._outdated:
            return ""
        rest = self._text[self._given :]
        self._given = len(self._text)
        return rest

    def _detokenized(self, tokens: Sequence[int]) -> str:
        if self._outdated:
            self._restart()
        before = self._text
        self._tokens.extend(tokens)
        self._text = self._detokenize(self._tokens)
        held = len(self._text) - len(self._text.rstrip(_REPLACEMENT))
        if len(self._tokens) > _MOST_WAITING:
            held = 0
        complete = len(self._text) - min(held, _MOST_HELD)
        found = self._text[self._given : complete]
        self._given = max(self._given, complete)
        if self._follows_text and len(tokens) == 1 and not held:
            self._learn(tokens[0], found, before)
        if not held and len(self._tokens) > _MOST_KEPT:
            del self._tokens[:-_KEPT]
            self._restart()
        self._follows_text = self._text != "" and not self._text.endswith(_REPLACEMENT)
        return found

    def _restart(self) -> None:
        self._text = self._detokenize(self._tokens)
        self._given = len(self._text)
        self._outdated = False

    def _learn(self, token: int, piece: str, before: str) -> None:
        """Keep the text of a token, unless it belongs to this place only.

        before   the text that it follows. Some tokenizers change it, such as " n" before "'t"
        """
        if piece and _REPLACEMENT not in piece and self._text == before + piece:
            self._pieces[token] = piece
