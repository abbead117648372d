"""RankEngine: the engine of a model that scores how relevant documents are to a query.

query, documents ─► [RankEngine] ─► TextRerankPipeline ─► FP32[documents]
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import openvino_genai
from core_generate import Engine

from backend_openvino_genai.loading import check_device, reason, thread_properties
from backend_openvino_genai.settings import Settings
from backend_openvino_genai.tokenizer import ModelTokenizer
from core.errors import internal, invalid

_ALL = 2**31 - 1  # documents whose scores the pipeline returns; its own default is 3


class RankEngine(Engine):
    """Scores documents with OpenVINO GenAI's TextRerankPipeline, one request at a time.

    device   the OpenVINO device
    """

    def __init__(self, path: Path, settings: Settings):
        check_device(settings.device)
        self.device = settings.device
        self._context = settings.context
        # The pipeline keeps the tensors of one call.
        self._lock = threading.Lock()
        genai = openvino_genai.TextRerankPipeline
        config = genai.Config(top_n=_ALL)
        try:
            self._pipeline = genai(
                str(path), settings.device, config, **thread_properties(settings)
            )
            self._tokenizer = ModelTokenizer(openvino_genai.Tokenizer(str(path)))
        except Exception as error:
            raise internal(f"OpenVINO GenAI cannot load '{path}': {reason(error)}") from None

    def rank(self, query: str, documents: Sequence[str]) -> tuple[Any, int]:
        """Return FP32[documents], and the number of tokens of all pairs of query and document.

        Raises CoreError(INVALID) for a pair longer than the context.
        """
        total = 0
        for at, each in enumerate(documents):
            count = self._tokenizer.pair_length(query, each)
            if count > self._context:
                raise invalid(
                    f"the query and document {at} have {count} tokens, and the context of the model is "
                    f"{self._context} tokens; send a shorter document"
                )
            total += count
        scores = np.empty(len(documents), np.float32)
        with self._lock:
            found = self._pipeline.rerank(query, list(documents))
        for at, score in found:
            scores[at] = score
        return scores, total

    def tokenize(self, text: str, special: bool = True) -> list[int]:
        return self._tokenizer.tokens(text, special)

    def detokenize(self, tokens: Sequence[int]) -> str:
        return self._tokenizer.text(tokens, special=True)

    def cache_bytes(self) -> int:
        """Return 0: scores need no cache."""
        return 0
