"""ModelTokenizer: the tokenizer of a model, with the rules of the contract of engines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


class ModelTokenizer:
    """Turns texts into tokens and tokens into texts. Thread-safe.

    raw            the Tokenizer of OpenVINO GenAI
    vocabulary     number of tokens
    pieces, ends   texts of tokens, which TokenText learns: a call of `text` takes as long as a part of a step
    """

    def __init__(self, raw: Any):
        self.raw = raw
        self.vocabulary = len(raw.get_vocab())
        self.pieces: dict[int, str] = {}
        self.ends: dict[int, str] = {}
        self._bos = str(raw.get_bos_token())

    def tokens(self, text: str, special: bool = True) -> list[int]:
        """Return the tokens of a text. With `special`, it begins with the token for that, but only once."""
        # A chat template may have written that token already.
        special = special and not (self._bos and text.startswith(self._bos))
        found = self.raw.encode(text, add_special_tokens=special).input_ids
        return [int(each) for each in found.data[0]]

    def pair_length(self, first: str, second: str) -> int:
        """Return the number of tokens of two texts that a model reads together.

        A tokenizer that was converted for one text reads them as one.
        """
        try:
            return int(self.raw.encode([first], [second]).input_ids.shape[1])
        except RuntimeError:
            return len(self.tokens(first + second))

    def text(self, tokens: Sequence[int], special: bool = False) -> str:
        """Return the text of tokens; without `special`, without the texts of special tokens."""
        return str(self.raw.decode(list(tokens), skip_special_tokens=not special))
