"""EmbeddingEngine: the engine of a model that computes embeddings.

Prompt, … ─► [EmbeddingEngine] ─► TextEmbeddingPipeline ─► FP32[prompts, dimensions]
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import openvino_genai
from core_generate import Engine, Prompt

from backend_openvino_genai.loading import check_device, reason, thread_properties
from backend_openvino_genai.settings import Settings
from backend_openvino_genai.tokenizer import ModelTokenizer
from core.errors import internal, invalid

_POOLINGS = {"cls": "CLS", "mean": "MEAN", "last": "LAST_TOKEN"}


class EmbeddingEngine(Engine):
    """Computes embeddings of length 1 with OpenVINO GenAI's TextEmbeddingPipeline, one request at a time.

    device   the OpenVINO device
    """

    def __init__(self, path: Path, settings: Settings):
        check_device(settings.device)
        self.device = settings.device
        self._context = settings.context
        # The pipeline keeps the tensors of one call.
        self._lock = threading.Lock()
        genai = openvino_genai.TextEmbeddingPipeline
        pooling = getattr(genai.PoolingType, _POOLINGS[settings.pooling or "cls"])
        config = genai.Config(pooling_type=pooling, normalize=True)
        try:
            self._pipeline = genai(
                str(path), settings.device, config, **thread_properties(settings)
            )
            self._tokenizer = ModelTokenizer(openvino_genai.Tokenizer(str(path)))
        except Exception as error:
            raise internal(f"OpenVINO GenAI cannot load '{path}': {reason(error)}") from None

    def embed(self, prompts: Sequence[Prompt]) -> tuple[Any, list[int]]:
        """Return FP32[prompts, dimensions], and how many tokens each prompt has.

        Raises CoreError(INVALID) for a prompt longer than the context, which the pipeline would cut off, and
        for one of tokens, which it does not take.
        """
        counts = []
        for each in prompts:
            if each.tokens:
                raise invalid(
                    "the input 'prompt_token_ids' is not supported: this engine embeds texts only; send "
                    "text_input"
                )
            counts.append(len(self._tokenizer.tokens(each.text)))
            if counts[-1] > self._context:
                raise invalid(
                    f"the text has {counts[-1]} tokens, and the context of the model is {self._context} "
                    "tokens; send a shorter text"
                )
        with self._lock:
            found = self._pipeline.embed_documents([each.text for each in prompts])
        return np.array(found, np.float32), counts

    def tokenize(self, text: str, special: bool = True) -> list[int]:
        return self._tokenizer.tokens(text, special)

    def detokenize(self, tokens: Sequence[int]) -> str:
        return self._tokenizer.text(tokens, special=True)

    def cache_bytes(self) -> int:
        """Return 0: embeddings need no cache."""
        return 0
