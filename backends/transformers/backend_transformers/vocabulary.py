"""Vocabulary: the tokenizer of a model."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

_MOST_AT_ONCE = 4096  # characters that are tokenized while the GIL is held, in some milliseconds
_ANCHOR = "a"  # a text whose last token keeps the space that begins the next one


class Vocabulary:
    """Texts and tokens. Thread-safe: the tokenizer's library is, as long as no setting changes.

    bos     text of the token that begins a text; "" for none
    size    number of tokens
    typed   whether the model reads which of two texts a token belongs to
    """

    def __init__(self, tokenizer: Any):
        self._tokens = tokenizer.backend_tokenizer
        self._tokens.no_truncation()
        self._tokens.no_padding()
        self.bos: str = tokenizer.bos_token or ""
        self._bos_token: int | None = tokenizer.bos_token_id
        self.typed = "token_type_ids" in tokenizer.model_input_names
        self.size: int = self._tokens.get_vocab_size()
        self._anchor = self.tokenize(_ANCHOR, special=False)
        self._anchor_length = len(self.detokenize(self._anchor))
        self.piece = lru_cache(65536)(self._piece)

    def tokenize(self, text: str, special: bool = True) -> list[int]:
        """Return the tokens of a text. With `special`, they include those that begin and end a prompt.

        A text that begins with the text of the first token, as chat templates write it, gets no second one.
        """
        if special and self.bos and text.startswith(self.bos):
            special = False
        found: list[int] = self._encoding(text, None, special).ids
        return found

    def prompt(self, text: str) -> list[int]:
        """Return the tokens of a prompt; for an empty one, the token that begins a text, if there is one."""
        found = self.tokenize(text)
        return found or ([] if self._bos_token is None else [self._bos_token])

    def encode(self, text: str, second: str | None = None) -> tuple[list[int], list[int]]:
        """Return the tokens of a text or pair as a model that scores it takes them, and their types.

        The type is 1 for tokens of the second text, else 0.
        """
        found = self._encoding(text, second)
        return found.ids, found.type_ids

    def _encoding(self, text: str, second: str | None, special: bool = True) -> Any:
        if len(text) + len(second or "") <= _MOST_AT_ONCE:
            return self._tokens.encode(text, second, add_special_tokens=special)
        # The library releases the GIL for batches only: the server goes on meanwhile.
        batch = [text if second is None else (text, second)]
        return self._tokens.encode_batch(batch, add_special_tokens=special)[0]

    def detokenize(self, tokens: Sequence[int]) -> str:
        """Return the text of tokens, with that of special tokens."""
        return str(self._tokens.decode(list(tokens), skip_special_tokens=False))

    def plain(self, tokens: Sequence[int]) -> str:
        """Return the text of tokens, without special tokens."""
        return str(self._tokens.decode(list(tokens), skip_special_tokens=True))

    def _piece(self, token: int) -> str:
        """Return the text of one token inside a text: with the space before a word."""
        return self.detokenize([*self._anchor, token])[self._anchor_length :]

    def as_json(self) -> str:
        """Return the tokenizer as the content of a file tokenizer.json."""
        return str(self._tokens.to_str())
