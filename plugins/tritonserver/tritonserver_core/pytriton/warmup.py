"""Warmup: ModelConfig.model_warmup ─► requests that a function gets before its model is ready."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tritonserver_core.pytriton.exceptions import PyTritonBadParameterError
from tritonserver_core.pytriton.model_config import BoundConfig, WarmupInput
from tritonserver_core.pytriton.request import Request

_LETTERS = np.frombuffer(b"abcdefghijklmnopqrstuvwxyz0123456789", "S1")


def warmup_requests(config: BoundConfig) -> Iterator[Request]:
    """Yield the warmup requests of a model. Raises PyTritonBadParameterError, OSError for a missing file."""
    for each in config.config.model_warmup or ():
        rows = (each.batch_size,) if config.batching else ()
        for _ in range(each.count):
            yield Request({name: _array(name, given, rows) for name, given in each.inputs.items()})


def _array(name: str, given: WarmupInput, rows: tuple[int, ...]) -> np.ndarray:
    """Return the array of an input: of shape [rows, …] if the model batches."""
    shape = (*rows, *given.shape)
    text = given.dtype in (bytes, object, np.bytes_, np.object_)
    if given.input_data_file:
        return _of_file(name, np.load(given.input_data_file), given, shape)
    if given.zero_data:
        return np.full(shape, b"", object) if text else np.zeros(shape, given.dtype)
    if not given.random_data:
        raise PyTritonBadParameterError(
            f"warmup input '{name}' needs zero_data, random_data or input_data_file"
        )
    random = np.random.default_rng()
    if text:
        words = [b"".join(random.choice(_LETTERS, 16).tolist()) for _ in range(int(np.prod(shape)))]
        return np.array(words, object).reshape(shape)
    kind = np.dtype(given.dtype).kind
    if kind in "iu":
        return random.integers(0, 100, shape).astype(given.dtype)
    if kind == "b":
        return random.integers(0, 2, shape).astype(bool)
    return random.random(shape).astype(given.dtype)


def _of_file(
    name: str, found: np.ndarray, given: WarmupInput, shape: tuple[int, ...]
) -> np.ndarray:
    """Return the array of a file; one row is repeated for all rows."""
    if found.shape == tuple(given.shape):
        found = np.broadcast_to(found, shape)
    if found.shape != shape:
        raise PyTritonBadParameterError(
            f"warmup input '{name}' has shape {list(found.shape)} in {given.input_data_file}, expected "
            f"{list(shape)} or {list(given.shape)}"
        )
    return found.astype(given.dtype)
