"""Structures that a text must match: schemas, regular expressions, grammars, choices, by LLGuidance.

Structure ─► [Grammars.matcher] ─► Matcher ─► the tokens that may come next
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable
from typing import Any

import llguidance
import numpy as np
import torch
from core_generate import Structure, StructureRefused
from core_generate.guidance import guidance_schema

from backend_transformers.vocabulary import Vocabulary
from core.errors import internal

MOST_CHARACTERS = 2**20


class Grammars:
    """Compiles structures for one vocabulary. Thread-safe.

    ends   tokens that end a text
    size   number of logits
    """

    def __init__(self, vocabulary: Vocabulary, ends: Iterable[int], size: int):
        self._vocabulary = vocabulary
        self._ends = sorted(ends)
        self._size = max(size, vocabulary.size)
        self._tokenizer: Any = None
        self._lock = threading.Lock()

    def matcher(self, structure: Structure) -> Matcher:
        """Return a matcher at the begin of a text. Raises StructureRefused, which names the field."""
        field, grammar = _grammar(structure)
        if len(grammar) > MOST_CHARACTERS:
            raise StructureRefused(
                f"'{field}' makes a grammar of {len(grammar)} characters, at most {MOST_CHARACTERS} are "
                "allowed"
            )
        found = llguidance.LLMatcher(self._of_vocabulary(), grammar, log_level=0)
        if found.is_error():
            raise StructureRefused(f"'{field}' cannot be compiled: {_reason(found.get_error())}")
        return Matcher(found)

    def _of_vocabulary(self) -> Any:
        # Not at the load: it takes up to a second, and most models get no structure.
        with self._lock:
            if self._tokenizer is None:
                self._tokenizer = llguidance.LLTokenizer(
                    self._vocabulary.as_json(), n_vocab=self._size, eos_token=self._ends or None
                )
            return self._tokenizer


class Matcher:
    """The place in a structure that a text has reached. Not thread-safe."""

    def __init__(self, matcher: Any):
        self._matcher = matcher

    @property
    def is_complete(self) -> bool:
        """Whether nothing may follow."""
        return bool(self._matcher.is_stopped())

    def allowed(self, logits: Any) -> Any:
        """Return which tokens may come next, BOOL[vocabulary] on the device of the logits."""
        bits = np.frombuffer(self._matcher.compute_bitmask(), np.uint8)
        found = np.zeros(len(logits), bool)
        flags = np.unpackbits(bits, bitorder="little")[: len(logits)]
        found[: len(flags)] = flags
        return torch.from_numpy(found).to(logits.device)

    def take(self, token: int) -> None:
        """Add a token. Raises CoreError(INTERNAL) if it does not match, or a limit is exceeded."""
        if not self._matcher.consume_token(token):
            raise internal(f"the structure of the text: {_reason(self._matcher.get_error())}")


def _grammar(structure: Structure) -> tuple[str, str]:
    """Return the field of a structure that is set, and its grammar. Raises CoreError(INVALID)."""
    if structure.schema is not None:
        schema = json.dumps(guidance_schema(structure.schema))
        return "schema", llguidance.LLMatcher.grammar_from_json_schema(schema)
    if structure.regex:
        return "regex", llguidance.LLMatcher.grammar_from_regex(structure.regex)
    if structure.choices:
        lark = "start: " + " | ".join(map(json.dumps, structure.choices))
        return "choices", llguidance.LLMatcher.grammar_from_lark(lark)
    try:
        return "grammar", llguidance.grammar_from("grammar", structure.grammar)
    except ValueError as error:
        raise StructureRefused(f"'grammar' cannot be compiled: {error}") from None


def _reason(text: str) -> str:
    """Return an error of LLGuidance in one line, without what shows the state of its parser."""
    lines = [line.strip() for line in text.partition("<state>")[0].splitlines()]
    return " ".join(filter(None, lines))[:500]
