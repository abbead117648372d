"""Rows: the running generations as one batch, with their cache of keys and values.

prompt ─► [CausalModel.read] ─► cache of one row ─► [Rows.join] ─► [Rows.step] ─► logits

All rows end at the same column, so that a step writes one column; a shorter row has padding on its left. That
is the form in which models of transformers compute batches themselves.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from transformers.cache_utils import Cache, DynamicLayer

_SPARE = 128  # columns that are allocated ahead


class GrowingLayer(DynamicLayer):  # type: ignore[misc]
    """Keys and values of one layer, FP[rows, heads, columns, size], with free columns behind them.

    A step writes into a free column. The class of transformers copies everything at each step.
    """

    def lazy_initialization(self, key_states: Any, value_states: Any) -> None:
        super().lazy_initialization(key_states, value_states)
        self._keys, self._values = key_states[..., :0, :], value_states[..., :0, :]
        self.keys, self.values = self._keys, self._values

    def update(
        self, key_states: Any, value_states: Any, *args: Any, **kwargs: Any
    ) -> tuple[Any, Any]:
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        self._keys, self.keys = _appended(self._keys, self.keys, key_states)
        self._values, self.values = _appended(self._values, self.values, value_states)
        return self.keys, self.values

    def replace(self, keys: Any, values: Any) -> None:
        """Take the place of all keys and values; these have no free columns."""
        self._keys, self._values = self.keys, self.values = keys, values

    @property
    def size(self) -> int:
        """Bytes that are allocated."""
        if not self.is_initialized:
            return 0
        return int(sum(each.numel() * each.element_size() for each in (self._keys, self._values)))


def new_cache() -> Any:
    """Return an empty cache. Its layers keep all columns; models with a window mask the older ones."""
    return Cache(layer_class_to_replicate=GrowingLayer)


class CausalModel:
    """A model of transformers that continues texts. Not thread-safe.

    module   the model
    """

    def __init__(self, module: Any):
        self.module = module
        accepted = inspect.signature(module.forward).parameters
        self._positions = "position_ids" in accepted
        # Its name since transformers 5.24; older ones, and code of models, have the other name only.
        self._cache = "cache" if "cache" in accepted else "past_key_values"
        self._more = {"logits_to_keep": 1} if "logits_to_keep" in accepted else {}

    def read(
        self, tokens: Sequence[int], cache: Any, sounds: Mapping[str, Any] | None = None
    ) -> Any:
        """Add tokens to the cache of one row. Return the logits after the last one, FP32[1, vocabulary].

        sounds   arguments of the model that belong to places among these tokens
        """
        begin = cache.get_seq_length()
        ids = torch.tensor([list(tokens)], device=self.module.device)
        positions = torch.arange(begin, begin + len(tokens), device=self.module.device)[None]
        return self.compute(ids, positions, None, cache, self._placed(sounds or {}))

    def _placed(self, sounds: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments on the device of the model, and numbers in its datatype."""
        found = {name: each.to(self.module.device) for name, each in sounds.items()}
        return {
            name: each.to(self.module.dtype) if each.is_floating_point() else each
            for name, each in found.items()
        }

    def compute(
        self,
        ids: Any,
        positions: Any,
        mask: Any,
        cache: Any,
        sounds: Mapping[str, Any] | None = None,
    ) -> Any:
        """Return the logits after the last column, FP32[rows, vocabulary].

        ids, positions   int64[rows, columns]
        mask             int64[rows, all columns of the cache too], 0 for padding; None without padding
        """
        given = {"position_ids": positions} if self._positions else {}
        given[self._cache] = cache
        found = self.module(
            input_ids=ids,
            attention_mask=mask,
            use_cache=True,
            **given,
            **self._more,
            **(sounds or {}),
        )
        return found.logits[:, -1].float()


class Rows:
    """The batch. Not thread-safe.

    bytes   allocated for keys and values
    """

    def __init__(self, model: CausalModel):
        self.bytes = 0
        self._model = model
        self._cache: Any = None  # None while there are no rows
        self._pads: list[int] = []  # columns of padding, for each row

    def join(self, cache: Any) -> None:
        """Append a row, whose cache the batch takes over."""
        if self._cache is None:
            self._cache, self._pads = cache, [0]
            self._measure()
            return
        old, new = self._cache.get_seq_length(), cache.get_seq_length()
        columns = max(old, new)
        for layer, added in zip(self._cache.layers, cache.layers, strict=True):
            if layer.is_initialized:
                layer.replace(
                    _beside(layer.keys, added.keys, columns),
                    _beside(layer.values, added.values, columns),
                )
        self._pads = [each + columns - old for each in self._pads] + [columns - new]
        self._measure()

    def keep(self, rows: Sequence[int]) -> None:
        """Remove all rows but these, which are in ascending order."""
        if not rows:
            self.clear()
            return
        self._pads = [self._pads[row] for row in rows]
        trim = min(self._pads)
        self._pads = [each - trim for each in self._pads]
        for layer in self._cache.layers:
            if layer.is_initialized:
                index = torch.tensor(list(rows), device=layer.keys.device)
                layer.replace(
                    layer.keys[:, :, trim:].index_select(0, index),
                    layer.values[:, :, trim:].index_select(0, index),
                )
        self._measure()

    def clear(self) -> None:
        self._cache, self._pads, self.bytes = None, [], 0

    def step(self, tokens: Sequence[int]) -> Any:
        """Add a token to each row. Return the logits after it, FP32[rows, vocabulary]."""
        columns = self._cache.get_seq_length()
        device = self._model.module.device
        pads = torch.tensor(self._pads, device=device)[:, None]
        mask = None
        if any(self._pads):
            mask = (torch.arange(columns + 1, device=device)[None] >= pads).long()
        ids = torch.tensor(tokens, device=device)[:, None]
        found = self._model.compute(ids, columns - pads, mask, self._cache)
        self._measure()
        return found

    def _measure(self) -> None:
        self.bytes = sum(each.size for each in self._cache.layers)


def _appended(buffer: Any, used: Any, new: Any) -> tuple[Any, Any]:
    """Write columns behind the used ones of a buffer. Return the buffer and the used ones.

    The buffer is a new, longer one if it has no room.
    """
    begin, end = used.shape[-2], used.shape[-2] + new.shape[-2]
    if end > buffer.shape[-2]:
        rows, heads, _, size = used.shape
        buffer = used.new_empty((rows, heads, end + max(_SPARE, end // 8), size))
        buffer[:, :, :begin] = used
    buffer[:, :, begin:end] = new
    return buffer, buffer[:, :, :end]


def _beside(rows: Any, row: Any, columns: int) -> Any:
    """Return rows and one more in a tensor with `columns` columns, each filled with zeros on its left."""
    count, heads, old, size = rows.shape
    found = rows.new_zeros((count + 1, heads, columns, size))
    found[:count, :, columns - old :] = rows
    found[count:, :, columns - row.shape[-2] :] = row
    return found
