"""Tokenizer: texts and tokens of a model, by the tokenizer that vLLM has loaded."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

from core.errors import invalid


class Tokenizer:
    """Texts and tokens. Thread-safe.

    size   number of tokens of the vocabulary, those without a text included
    """

    def __init__(self, tokenizer: Any, size: int):
        self.size = size
        self._tokenizer = tokenizer
        self._bos = str(getattr(tokenizer, "bos_token", None) or "")
        self._bos_token: int | None = getattr(tokenizer, "bos_token_id", None)
        self._lock = threading.Lock()  # tokenizers of transformers are not thread-safe

    def tokens(self, text: str, special: bool = True) -> list[int]:
        """Return the tokens of a text. With `special`, they include those that begin and end a prompt.

        A text that begins with the text of the first token, as chat templates write it, gets no second one.
        """
        if special and self._bos and text.startswith(self._bos):
            special = False
        with self._lock:
            found = self._tokenizer.encode(text, add_special_tokens=special)
        return list(found)

    def prompt(self, text: str) -> list[int]:
        """Return the tokens of a prompt; for an empty one, the token that begins a text, if there is one."""
        found = self.tokens(text)
        return found or ([] if self._bos_token is None else [self._bos_token])

    def pair(self, first: str, second: str) -> tuple[list[int], list[int] | None]:
        """Return the tokens of a pair of texts, and which text each belongs to; None if that is not read."""
        with self._lock:
            found = self._tokenizer(text=first, text_pair=second)
        return found["input_ids"], found.get("token_type_ids")

    def text(self, tokens: Sequence[int]) -> str:
        """Return the text of tokens, with that of special tokens.

        Raises CoreError(INVALID) for a token outside the vocabulary.
        """
        self.check(tokens)
        with self._lock:
            return str(self._tokenizer.decode(list(tokens), skip_special_tokens=False))

    def check(self, tokens: Sequence[int]) -> None:
        """Raise CoreError(INVALID) for a token outside the vocabulary."""
        wrong = next((each for each in tokens if not 0 <= each < self.size), None)
        if wrong is not None:
            raise invalid(
                f"the token {wrong} is outside of the vocabulary, which has 0 to {self.size - 1}"
            )
