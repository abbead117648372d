"""Ragged batches, for any backend: inputs that describe requests of different shapes, and split outputs.

batch ─► [batch_inputs] ─► execute,   outputs ─► [scattered] ─► a part for each request.
`batch["x"]` of a ragged input has the elements of the first request, then of the second, and so on.
Source: BatchInput and BatchOutput in Triton's model_config.proto.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from core import dtypes
from core.batch import Batch
from core.config import ModelConfig
from core.config.messages import BatchInput


def batch_inputs(config: ModelConfig, batch: Batch) -> dict[str, np.ndarray]:
    """Return target name → array for each `batch_input` of the configuration.

    By kind: the element count of each request; the accumulated counts (with a leading zero, if configured);
    an array whose length is the largest count; or the shape of each row without the batch dimension, in two
    dimensions or flattened.
    """
    found = {}
    for each in config.batch_input:
        shapes = [request.inputs[each.source_input[0]].shape for request in batch.requests]
        values = _values(each.kind, shapes)
        array = values.astype(dtypes.BY_NUMBER[each.data_type].numpy)
        found.update(dict.fromkeys(each.target_name, array))
    return found


def _values(kind: int, shapes: list[tuple[int, ...]]) -> np.ndarray:
    counts = [math.prod(shape) for shape in shapes]
    if kind == BatchInput.BATCH_ELEMENT_COUNT:
        return np.array(counts)
    if kind == BatchInput.BATCH_ACCUMULATED_ELEMENT_COUNT:
        return np.cumsum(counts)
    if kind == BatchInput.BATCH_ACCUMULATED_ELEMENT_COUNT_WITH_ZERO:
        return np.cumsum([0, *counts])
    if kind == BatchInput.BATCH_MAX_ELEMENT_COUNT_AS_SHAPE:
        return np.zeros(max(counts))  # the model uses only its shape
    items = np.array([shape[1:] for shape in shapes for _ in range(shape[0])])
    return items.reshape(-1) if kind == BatchInput.BATCH_ITEM_SHAPE_FLATTEN else items


def scattered(
    config: ModelConfig, batch: Batch, outputs: Mapping[str, np.ndarray]
) -> list[dict[str, Any]]:
    """Return for each request of the batch its outputs: name → array.

    An output that batch_output names gets the shape of the request's source input. Any other is cut by rows.

    outputs   name → array of the whole batch; the results are views of it
    """
    sources = {
        name: each.source_input[0] for each in config.batch_output for name in each.target_name
    }
    found: list[dict[str, Any]] = [{} for _ in batch.requests]
    for name, array in outputs.items():
        start = 0
        for request, parts in zip(batch.requests, found, strict=True):
            if name in sources:
                shape = request.inputs[sources[name]].shape
                end = start + math.prod(shape)
                parts[name] = array.reshape(-1)[start:end].reshape(shape)
            else:
                end = start + request.rows
                parts[name] = array[start:end]
            start = end
    return found
