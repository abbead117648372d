"""ScoringEngine: embeddings of texts, scores of documents, and classes of texts.

texts ─► tokens ─► Batcher ─► [ScoringEngine] ─► the model ─► pooling, or logits
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from core_generate import Engine, Prompt, Status

from backend_transformers.batching import Batcher
from backend_transformers.loading import Loaded
from backend_transformers.pooling import Pooling
from backend_transformers.settings import Settings
from core.errors import invalid

_MOST_OF_QUERIES = 64 * 2**20  # characters of a query, counted for each document


class EncodedText(NamedTuple):
    """Tokens of a text, and for each of them 0, or 1 for the second text of a pair."""

    tokens: list[int]
    types: list[int]


class ScoringEngine(Engine):
    """Computes all texts of a request, together with those of other requests, on a thread of its own.

    labels   names of the classes; () unless the task is "classify"
    bytes    size of the weights
    """

    def __init__(self, loaded: Loaded, settings: Settings):
        self.most = settings.slots
        self.supports = settings.supports
        self.labels = settings.labels
        self.bytes = loaded.bytes
        self._settings = settings
        self._size = loaded.logits
        self._vocabulary = loaded.vocabulary
        self._module = loaded.module
        self._batcher = Batcher(
            self._compute,
            order=lambda text: -len(text.tokens),
            together=lambda texts: settings.batch // len(texts[0].tokens),
            threads=settings.threads,
        )

    def embed(self, prompts: Sequence[Prompt]) -> tuple[Any, list[int]]:
        texts = self._checked(
            EncodedText(list(each.tokens), [0] * len(each.tokens))
            if each.tokens
            else self._encoded(each.text)
            for each in prompts
        )
        return self._batcher.rows(texts), [len(each.tokens) for each in texts]

    def rank(self, query: str, documents: Sequence[str]) -> tuple[Any, int]:
        if len(query) * len(documents) > _MOST_OF_QUERIES:  # each pair has it, to be read again
            raise invalid(
                f"the query has {len(query)} characters for {len(documents)} documents; at most "
                f"{_MOST_OF_QUERIES} are accepted in all: send a shorter query, or fewer documents"
            )
        texts = self._checked(self._encoded(query, each) for each in documents)
        found = self._batcher.rows(texts)
        return found.reshape(-1)[: len(documents)], sum(len(each.tokens) for each in texts)

    def classify(self, texts: Sequence[str]) -> Any:
        """Return the score of each class, FP32[texts, classes], as of `class_scores`. Blocks. Any thread."""
        encoded = self._checked(self._encoded(each) for each in texts)
        found = self._batcher.rows(encoded)
        return found if len(texts) else np.zeros((0, len(self.labels)), np.float32)

    def tokenize(self, text: str, special: bool = True) -> list[int]:
        return self._vocabulary.tokenize(text, special)

    def detokenize(self, tokens: Sequence[int]) -> str:
        self._checked([EncodedText(list(tokens), [])])
        return self._vocabulary.detokenize(tokens)

    def status(self) -> Status:
        return Status(*self._batcher.counts())

    def close(self) -> None:
        self._batcher.close()

    def _encoded(self, text: str, second: str | None = None) -> EncodedText:
        return EncodedText(*self._vocabulary.encode(text, second))

    def _checked(self, texts: Iterable[EncodedText]) -> list[EncodedText]:
        """Return the texts. Each is checked before the next one is encoded.

        Raises CoreError(INVALID) for a text that is empty or too long, and for an unknown token.
        """
        found = []
        for i, each in enumerate(texts):
            count = len(each.tokens)
            if not 0 < count <= self._settings.context:
                raise invalid(
                    f"text {i} has {count} tokens, and the model takes 1 to {self._settings.context}; send "
                    "another text, or load the model with another parameter 'context'"
                )
            if not 0 <= min(each.tokens) <= max(each.tokens) < self._size:
                raise invalid(
                    f"text {i} has a token outside of the vocabulary, which has 0 to {self._size - 1}"
                )
            found.append(each)
        return found

    # on the thread of the batcher -------------------------------------------

    def _compute(self, texts: Sequence[EncodedText]) -> Any:
        longest = max(len(each.tokens) for each in texts)
        pad = self._module.config.pad_token_id

        def tensor(rows: Sequence[Sequence[int]], filled: int) -> Any:
            padded = [[*each, *[filled] * (longest - len(each))] for each in rows]
            return torch.tensor(padded, device=self._module.device)

        mask = tensor([[1] * len(each.tokens) for each in texts], 0)
        given = {"input_ids": tensor([each.tokens for each in texts], pad), "attention_mask": mask}
        if self._vocabulary.typed:
            given["token_type_ids"] = tensor([each.types for each in texts], 0)
        found = self._module(**given)
        if self._settings.task == "embed":
            rows = pooled(found.last_hidden_state.float(), mask, self._settings.pooling)
        else:
            rows = found.logits.float()
            if self._settings.task == "classify":
                rows = class_scores(self._module.config, rows)
        return rows.cpu().numpy()


def class_scores(config: Any, logits: Any) -> Any:
    """Return the score of each class, FP32[items, classes], as the pipelines of transformers compute it.

    config   of the model. Its `problem_type` says whether an item has one class: probabilities that sum to 1;
             or several classes: independent probabilities; or none of that: numbers of a regression
    """
    problem = getattr(config, "problem_type", None)
    if problem == "regression":
        return logits
    if problem == "multi_label_classification" or logits.shape[-1] == 1:
        return logits.sigmoid()
    return logits.softmax(-1)


def pooled(hidden: Any, mask: Any, pooling: Pooling) -> Any:
    """Return one embedding for each text, FP32[texts, numbers].

    hidden   FP32[texts, tokens, numbers]
    mask     int64[texts, tokens], 0 for padding, which is behind the text
    """
    weights = mask[..., None].to(hidden.dtype)
    if pooling.mode == "cls":
        found = hidden[:, 0]
    elif pooling.mode == "last":
        found = hidden[torch.arange(len(hidden), device=hidden.device), mask.sum(1) - 1]
    elif pooling.mode == "max":
        found = hidden.masked_fill(weights == 0, -torch.inf).amax(1)
    else:
        found = (hidden * weights).sum(1) / weights.sum(1)
    return torch.nn.functional.normalize(found, dim=-1) if pooling.normalize else found
