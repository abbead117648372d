"""Pooling: embeddings of texts, and scores of documents.

tokens ─► [Pooling] ─► AsyncLLM.encode ─► FP32[texts, dimensions], or FP32[documents]
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Sequence
from contextlib import aclosing
from typing import Any

import numpy as np
from vllm.inputs.engine import tokens_input
from vllm.pooling_params import PoolingParams

from backend_vllm.failures import failure
from backend_vllm.runner import EngineRunner
from backend_vllm.tokenizer import Tokenizer
from core.errors import internal


class Pooling:
    """Computes all texts of a request at once. Blocks. Any thread but that of the engine."""

    def __init__(self, runner: EngineRunner, tokenizer: Tokenizer):
        self._runner = runner
        self._tokenizer = tokenizer
        self._numbers = itertools.count(1)

    def embeddings(self, texts: Sequence[Sequence[int]]) -> tuple[Any, list[int]]:
        """Return the embeddings of texts of tokens, FP32[texts, dimensions], and their numbers of tokens."""
        params = PoolingParams(task="embed")
        found = self._all([(tokens, params) for tokens in texts])
        return np.stack(found), [len(each) for each in texts]

    def scores(
        self, query: str, documents: Sequence[str], check: Callable[[Sequence[int]], None]
    ) -> tuple[Any, int]:
        """Return the scores of documents for a query, FP32[documents], and the tokens of all pairs.

        check   raises CoreError for tokens that the model cannot read
        """
        asked: list[tuple[Sequence[int], Any]] = []
        for each in documents:
            tokens, types = self._pair(query, each)
            check(tokens)
            asked.append((tokens, _params(types)))
        found = [float(each.reshape(-1)[0]) for each in self._all(asked)]
        return np.array(found, np.float32), sum(len(tokens) for tokens, _ in asked)

    def _pair(self, query: str, document: str) -> tuple[list[int], list[int] | None]:
        if self._runner.config.model_config.use_sep_token:
            return self._tokenizer.pair(query, document)
        return self._tokenizer.tokens(query + document), None  # a language model that ranks

    def _all(self, asked: Sequence[tuple[Sequence[int], Any]]) -> list[Any]:
        try:
            return self._runner.call(self._gather(asked)).result()
        except Exception as error:
            raise failure(error) from error

    async def _gather(self, asked: Sequence[tuple[Sequence[int], Any]]) -> list[Any]:
        return await asyncio.gather(*[self._one(tokens, params) for tokens, params in asked])

    async def _one(self, tokens: Sequence[int], params: Any) -> Any:
        name = f"pool-{next(self._numbers)}"
        async with aclosing(
            self._runner.llm.encode(tokens_input(list(tokens)), params, name)
        ) as outputs:
            async for output in outputs:
                return output.outputs.data.float().numpy()
        raise internal("vLLM has ended a request without a result")


def _params(types: list[int] | None) -> Any:
    """Return the parameters of a pair of texts; those of the second have the type 1."""
    params = PoolingParams(task="classify")
    if types is not None and 1 in types:
        params.extra_kwargs = {"compressed_token_type_ids": types.index(1)}
    return params
