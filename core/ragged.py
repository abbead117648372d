"""Batches whose requests differ in shape: what the model is told about them. For any backend.

batch ─► [batch_inputs] ─► execute,   outputs ─► [scattered] ─► a part for each request.
A ragged input itself is `batch["x"]`: the elements of all requests, one request behind the other.
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
    """The inputs that no client sends: target name → what it tells of its source input.

    Of the counts of elements: one for each request, their sums so far (with a zero before them, if so
    configured), or an array of as many elements as the largest count. Of shapes without the batch
    dimension: one row for each row of the requests, or the same in one dimension.
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
        return np.zeros(max(counts))  # the model looks at its shape only
    items = np.array([shape[1:] for shape in shapes for _ in range(shape[0])])
    return items.reshape(-1) if kind == BatchInput.BATCH_ITEM_SHAPE_FLATTEN else items


def scattered(
    config: ModelConfig, batch: Batch, outputs: Mapping[str, np.ndarray]
) -> list[dict[str, Any]]:
    """The outputs of each request: those of batch_output in the shape of its input, others by rows.

    outputs   name → array of the whole batch; the parts are views of it
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
