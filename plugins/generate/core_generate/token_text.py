"""TokenText: text of tokens that arrive one after the other, for engines that report tokens only."""

from __future__ import annotations

from collections.abc import Callable, Sequence

_REPLACEMENT = "\ufffd"  # what tokenizers write for bytes that are no character
# Tokens that are detokenized again with the next ones: some tokenizers drop a space before the first.
_KEPT = 4
_MOST_KEPT = 12
_MOST_BYTES = 4  # of a character
_MOST_WAITING = 64  # tokens: a text that goes on without a complete character is given as it is
_LAST = 8  # tokens of a prompt that are detokenized


class TokenText:
    """Makes text of tokens. A character of several tokens appears with the last of them. Not thread-safe.

    detokenize   tokens → text. For an incomplete character, the text has U+FFFD or nothing. It may have
                 U+FFFD for the complete characters before it too, if their tokens are bytes as well
    pieces       token → its text behind other text, learnt on the way, so that a token is detokenized only
                 once; generations of one model share it. None: it is of this text alone
    ends         the last token of a prompt → its text alone, learnt on the way too; "" if it is no complete
                 character. With it, most prompts are not detokenized. None: they are
    """

    def __init__(
        self,
        detokenize: Callable[[Sequence[int]], str],
        pieces: dict[int, str] | None = None,
        ends: dict[int, str] | None = None,
    ):
        self._detokenize = detokenize
        self._pieces = {} if pieces is None else pieces
        self._ends = ends
        self._tokens: list[int] = []
        self._text = ""  # of these tokens, unless it is outdated
        self._given = ""  # what was returned of the text of these tokens
        self._read = 0  # the tokens of which all text was returned
        self._outdated = False  # _text lacks the last tokens, whose texts were known and are given
        self._follows_text = False  # what comes next follows a text of complete characters
        self._cut = (
            ""  # the text of the character that the prompt begins, if the answer does not end it
        )

    def follow(self, prompt: Sequence[int]) -> None:
        """Begin behind a prompt, before any call of `feed`. The text of the prompt is not returned.

        If the prompt ends within a character, `feed` returns this character with its last token. If other
        tokens come instead, it returns their text only.
        """
        if prompt and (text := self._end_of(prompt[-1])):
            self._begin([prompt[-1]], text, [])
            return
        for missing in range(_MOST_BYTES):
            end = len(prompt) - missing
            for kept in range(_LAST, _LAST + _MOST_BYTES):
                tokens = list(prompt[max(0, end - kept) : end])
                text = self._detokenize(tokens)
                if not text.startswith(_REPLACEMENT) and not text.endswith(_REPLACEMENT):
                    self._begin(tokens, text, list(prompt[end:]))
                    return
        tokens = list(prompt[-_LAST:])
        self._begin(tokens, self._detokenize(tokens), [])

    def feed(self, tokens: Sequence[int]) -> str:
        """Add tokens. Return the new characters, except an incomplete one at the end of the text.

        That one waits for its other tokens; once more than 64 tokens wait, it is returned as U+FFFD.
        """
        if len(tokens) == 1:
            return self._feed(tokens[0])
        return "".join([self._feed(each) for each in tokens])

    def end(self) -> str:
        """End the text. Return what was held back: the rest of a character that is not complete."""
        return "" if self._outdated else self._rest()

    def _feed(self, token: int) -> str:
        piece = self._pieces.get(token) if self._follows_text else None
        if piece is None:
            return self._detokenized(token)
        self._tokens.append(token)
        self._outdated = True
        if len(self._tokens) > _MOST_KEPT and all(
            each in self._pieces for each in self._tokens[-_KEPT:]
        ):  # else it might cut a character
            del self._tokens[:-_KEPT]
        return piece

    def _detokenized(self, token: int) -> str:
        if self._outdated:
            self._restart(self._detokenize(self._tokens))
        before = self._text
        self._tokens.append(token)
        self._text = self._detokenize(self._tokens)
        complete = self._text.rstrip(_REPLACEMENT)
        if complete != self._text and len(self._tokens) <= _MOST_WAITING:
            self._follows_text = False
            if not complete.startswith(
                self._given
            ):  # characters before this one lack their text now
                return ""
            found = complete[len(self._given) :]
            self._given = complete
            return self._without_cut(found)
        found = self._rest()
        if self._follows_text:
            self._learn(token, found, before)
        if len(self._tokens) > _MOST_KEPT:
            self._shorten()
        self._follows_text = found != "" and not found.endswith(_REPLACEMENT)
        return found

    def _rest(self) -> str:
        """Return the text that was not returned yet."""
        if self._text.startswith(self._given):
            found = self._text[len(self._given) :]
        else:  # the last tokens have changed the text before them
            found = self._detokenize(self._tokens[self._read :])
        self._given = self._text
        self._read = len(self._tokens)
        return self._without_cut(found)

    def _end_of(self, token: int) -> str:
        """Return the text of a token if `ends` may have it and it is complete without others, else ""."""
        if self._ends is None:
            return ""
        text = self._ends.get(token)
        if text is None:
            text = self._detokenize([token])
            self._ends[token] = text = "" if _REPLACEMENT in text else text
        return text

    def _begin(self, tokens: list[int], text: str, rest: list[int]) -> None:
        """Begin with tokens of complete characters, and those of the character that a prompt ends within."""
        self._tokens = tokens + rest
        self._restart(text)
        if rest:
            self._text = self._detokenize(self._tokens)
            self._read = len(tokens)
            self._cut = self._detokenize(rest)
        self._follows_text = text != "" and not rest

    def _without_cut(self, found: str) -> str:
        """Return the first text of an answer without that of a character that the prompt begins."""
        if not found:
            return ""
        cut, self._cut = self._cut, ""
        return found.removeprefix(cut)

    def _restart(self, text: str) -> None:
        """Begin with tokens whose text was returned."""
        self._text = self._given = text
        self._read = len(self._tokens)
        self._outdated = False

    def _shorten(self) -> None:
        """Drop the first tokens. Keep more of them where a character would be cut."""
        for kept in range(_KEPT, _KEPT + _MOST_BYTES):
            text = self._detokenize(self._tokens[-kept:])
            if self._text.endswith(text) or len(self._tokens) > _MOST_WAITING:
                del self._tokens[:-kept]
                self._restart(text)
                return

    def _learn(self, token: int, piece: str, before: str) -> None:
        """Keep the text of a token, unless it belongs to this place only.

        before   the text that it follows. Some tokenizers change it, such as " n" before "'t"
        """
        if not piece or _REPLACEMENT in piece or self._text != before + piece:
            return
        # The last token of a character has no text alone. Some tokenizers drop a space before the first one.
        if self._detokenize([token]) in (piece, piece.removeprefix(" ")):
            self._pieces[token] = piece
