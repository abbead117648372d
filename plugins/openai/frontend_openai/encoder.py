"""Encoder: embeddings of texts by a plain model of any backend, with a tokenizer beside it.

texts ─► tokens ─► batches of input_ids and attention_mask ─► the model ─► hidden states ─► pooling ─► rows
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from core_generate.prompt_size import excess_bytes, longest_text

from core.config import Signature
from core.dtypes import INT32, INT64
from core.errors import internal, invalid
from core.request import InferenceRequest
from core.tensor import Tensor
from frontend_openai.encoder_files import EncoderFiles
from frontend_openai.errors import wrong

if TYPE_CHECKING:
    from core.response import InferenceResponse, Reply

IDS, MASK, TYPES = "input_ids", "attention_mask", "token_type_ids"
_HIDDEN = ("last_hidden_state", "token_embeddings", "hidden_states")
_POOLED = "sentence_embedding"
_MOST_ROWS = 32  # of a batch; more pay off on few machines, and pad more

Tokens = tuple[Sequence[int], Sequence[int]]  # of one text, and the type of each
Ask = Callable[[InferenceRequest], "Reply"]


def is_encoder(signature: Signature) -> bool:
    """Return whether a model has the inputs of an encoder."""
    return IDS in signature.inputs and MASK in signature.inputs


class Encoder:
    """One model version, with its files. Raises CoreError(INVALID) in its constructor if it does not fit.

    pooled   whether the model makes the embeddings by itself, in an output sentence_embedding
    """

    def __init__(self, signature: Signature, files: EncoderFiles):
        self.signature = signature
        self._files = files
        self._typed = TYPES in signature.inputs
        others = [
            name
            for name, spec in signature.inputs.items()
            if name not in (IDS, MASK, TYPES) and not spec.optional
        ]
        if others:
            raise self._unfit(f"needs the inputs {', '.join(others)}, which no text gives")
        for name in (IDS, MASK, *([TYPES] if self._typed else [])):
            spec = signature.inputs[name]
            if spec.dtype not in (INT32, INT64) or len(self._dims(spec.dims)) != 2:
                raise self._unfit(
                    f"has the input '{name}' {spec.dtype.name}{list(spec.dims)}; expected INT64 or INT32 "
                    "[texts, tokens]"
                )
        self.pooled = _POOLED in signature.outputs
        self._output = self._find_output()
        rows, self._tokens = self._dims(signature.inputs[IDS].dims)
        self._rows = _MOST_ROWS if rows < 0 else rows
        if signature.max_batch_size:
            self._rows = min(_MOST_ROWS, signature.max_batch_size)

    def encode(self, texts: Sequence[str]) -> list[Tokens]:
        """Return the tokens of texts. Takes long for many texts. Any thread."""
        found = self._files.tokenizer.encode_batch(list(texts))
        return [(each.ids, each.type_ids) for each in found]

    @property
    def _longest(self) -> int:
        """Return the most tokens of a text, 0 for any number."""
        most = self._files.longest
        return min(most or self._tokens, self._tokens) if self._tokens > 0 else most

    def check_sizes(self, texts: Sequence[str], field_of: Callable[[int], str]) -> None:
        """Raise FieldError for a text that is too long by far, before it is tokenized.

        field_of   as of `check`
        """
        most = self._longest
        bound = longest_text(most)
        for number, text in enumerate(texts):
            if most and (size := excess_bytes(text, bound)):
                raise wrong(
                    field_of(number),
                    f"the text has {size} bytes, and model '{self.signature.name}' takes "
                    f"{most} tokens, for which at most {bound} bytes are read",
                )

    def check(self, tokens: Sequence[Tokens], field_of: Callable[[int], str]) -> None:
        """Raise FieldError for a text without tokens, with too many, or with one outside of the vocabulary.

        field_of   returns the field of the request with a text, by its number
        """
        most = self._longest
        for number, (ids, _) in enumerate(tokens):
            if not ids or (most and len(ids) > most):
                raise wrong(
                    field_of(number),
                    f"the text has {len(ids)} tokens, and model '{self.signature.name}' takes 1 to "
                    f"{most or 'any number'}",
                )
            if (largest := max(ids)) >= self._files.vocabulary:
                raise wrong(
                    field_of(number),
                    f"there is no token {largest}: those of model '{self.signature.name}' are 0 to "
                    f"{self._files.vocabulary - 1}",
                )

    async def rows(self, ask: Ask, tokens: Sequence[Tokens]) -> Any:
        """Return the embedding of each text, FP32[texts, numbers]. Event loop only.

        ask   hands a request to the model
        Raises CoreError of the model, and INTERNAL for an output of another shape.
        """
        # Texts of about one length share a batch, which then has little padding.
        order = sorted(range(len(tokens)), key=lambda number: len(tokens[number][0]))
        parts = [order[at : at + self._rows] for at in range(0, len(order), self._rows)]

        async def one(part: Sequence[int]) -> Any:
            request, mask = self._request([tokens[number] for number in part])
            return self._embeddings(await ask(request), mask)[: len(part)]

        tasks = [asyncio.ensure_future(one(part)) for part in parts]
        try:
            found = np.concatenate(await asyncio.gather(*tasks))
        finally:
            for task in tasks:
                task.cancel()
        rows = np.empty_like(found)
        rows[order] = found
        return rows

    def _request(self, texts: Sequence[Tokens]) -> tuple[InferenceRequest, Any]:
        """Return the request for a batch, and its mask, int64[rows, tokens]."""
        fixed = self._dims(self.signature.inputs[IDS].dims)[0]
        count = len(texts) if self.signature.max_batch_size or fixed < 0 else fixed
        longest = self._tokens if self._tokens > 0 else max(len(ids) for ids, _ in texts)
        ids = np.full((count, longest), self._files.pad, np.int64)
        mask, types = np.zeros((2, count, longest), np.int64)
        mask[len(texts) :, 0] = 1  # rows that fill up the batch: an empty mask gives no number
        for row, (tokens, kinds) in enumerate(texts):
            ids[row, : len(tokens)] = tokens
            mask[row, : len(tokens)] = 1
            types[row, : len(kinds)] = kinds
        arrays = {IDS: ids, MASK: mask, **({TYPES: types} if self._typed else {})}
        inputs = {}
        for name, array in arrays.items():
            dtype = self.signature.inputs[name].dtype
            inputs[name] = Tensor(name, dtype, array.shape, array=array.astype(dtype.numpy))
        request = InferenceRequest(
            self.signature.name, inputs, model_version=self.signature.version
        )
        return request, mask

    def _embeddings(self, response: InferenceResponse, mask: Any) -> Any:
        found = np.asarray(response.output(self._output).array)
        expected = mask.shape[:1] if self.pooled else mask.shape
        if found.ndim != len(expected) + 1 or found.shape[:-1] != expected:
            raise internal(
                f"model '{self.signature.name}': output '{self._output}' has the shape {list(found.shape)}; "
                f"expected {[*expected, 'numbers']}"
            )
        hidden = found.astype(np.float32)
        rows = hidden if self.pooled else pooled(hidden, mask, self._files.pooling)
        if self._files.normalize:
            lengths = np.linalg.norm(rows, axis=1, keepdims=True)
            rows = rows / np.maximum(lengths, np.float32(1e-12))
        return rows

    def _find_output(self) -> str:
        outputs = self.signature.outputs
        floats = {name: spec for name, spec in outputs.items() if spec.dtype.name in _FLOATS}
        rank = 2 if self.pooled else 3
        fitting = [name for name, spec in floats.items() if len(self._dims(spec.dims)) == rank]
        names = (_POOLED,) if self.pooled else _HIDDEN
        for name in names:
            if name in fitting:
                return name
        if len(fitting) == 1 and not self.pooled:
            return fitting[0]
        shown = ", ".join(f"{n} {s.dtype.name}{list(s.dims)}" for n, s in outputs.items())
        raise self._unfit(
            f"has the outputs {shown}; expected one FP32 or FP16 output [texts, tokens, numbers], or "
            f"{_POOLED} [texts, numbers]"
        )

    def _dims(self, dims: Sequence[int]) -> tuple[int, ...]:
        """Return the dimensions with that of the batch."""
        return (-1, *dims) if self.signature.max_batch_size else tuple(dims)

    def _unfit(self, problem: str) -> Exception:
        return invalid(f"model '{self.signature.name}' computes no embeddings: it {problem}")


_FLOATS = ("FP32", "FP16")


def pooled(hidden: Any, mask: Any, pooling: str) -> Any:
    """Return one embedding for each text, FP32[texts, numbers].

    hidden    FP32[texts, tokens, numbers]
    mask      int64[texts, tokens], 0 for padding, which is behind the text
    pooling   one of POOLINGS
    """
    if pooling == "cls":
        return hidden[:, 0]
    if pooling == "last":
        return hidden[np.arange(len(hidden)), mask.sum(1) - 1]
    weights = mask[..., None].astype(np.float32)
    if pooling == "max":
        return np.where(weights > 0, hidden, -np.inf).max(1).astype(np.float32)
    # `where`: padding may have any number, also none.
    summed = np.where(weights > 0, hidden, np.float32(0)).sum(1, dtype=np.float32)
    return summed / weights.sum(1)
