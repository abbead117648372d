"""The inputs of a batch as ONNX Runtime takes them.

batch ─► [Feed] ─► run.  Mostly core's arrays as they are; scalars lose their dimension, text becomes
str, and what config.pbtxt has as batch_input is added.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from backend_onnx.graph import Graph
from core import dlpack, dtypes
from core.batch import Batch
from core.config import ModelConfig
from core.errors import invalid
from core.ragged import batch_inputs


class Feed:
    """Makes the feeds of one instance."""

    def __init__(self, config: ModelConfig, graph: Graph):
        self._config = config if config.batch_input else None
        infos = {**graph.inputs, **graph.overridable}
        self._scalars = {name for name, info in infos.items() if not info.dims}
        self._texts = {name for name, info in infos.items() if info.dtype is dtypes.BYTES}
        self._as_they_are = not (self._scalars or self._texts or config.batch_input)

    def __call__(self, batch: Batch) -> dict[str, Any]:
        """Input name → array, on a device where a GPU instance has got it there.

        A request whose text cannot be passed on gets its error here.
        """
        batch.inputs_ready()
        feed = {name: batch[name] for name in batch}
        if self._as_they_are:
            return feed
        if self._config is not None:
            feed.update(batch_inputs(self._config, batch))
        for name in feed:
            if name in self._texts:
                feed[name] = _text(feed[name], name, batch)
            if name in self._scalars:
                feed[name] = _scalar(feed[name])
        return feed


def _scalar(array: Any) -> np.ndarray:
    """Its one element without dimensions; small enough to come to the host."""
    on_host = array if isinstance(array, np.ndarray) else dlpack.to_host(array)
    return on_host.reshape(())


def _text(array: np.ndarray, name: str, batch: Batch) -> np.ndarray:
    """bytes → str, which is what ONNX Runtime's Python interface takes.

    Bytes that are no UTF-8 go as fixed-width bytes, which end at the first NUL; a request with
    elements that have a NUL as well is failed, and its elements left empty.
    """
    elements = array.reshape(-1)
    try:
        texts = [element.decode() for element in elements]
    except UnicodeDecodeError:
        return _raw(elements, name, batch).reshape(array.shape)
    found = np.empty(len(texts), object)
    found[:] = texts
    return found.reshape(array.shape)


def encoded(array: np.ndarray) -> np.ndarray:
    """str → bytes, which is what core's BYTES are."""
    found = np.empty(array.size, object)
    found[:] = [element.encode() for element in array.reshape(-1)]
    return found.reshape(array.shape)


def _raw(elements: np.ndarray, name: str, batch: Batch) -> np.ndarray:
    rows = max(1, batch.rows)
    width = len(elements) // rows
    first = 0
    kept = elements.copy()
    for i, request in enumerate(batch.requests):
        last = first + request.rows * width if len(batch.requests) > 1 else len(elements)
        if any(b"\0" in element for element in elements[first:last]):
            batch.fail(
                i,
                invalid(
                    f"input '{name}' of model '{batch.signature.name}' has a NUL byte beside bytes "
                    "that are no UTF-8; ONNX Runtime's Python interface can pass on only one of them"
                ),
            )
            kept[first:last] = b""
        first = last
    # One byte more than the longest: ONNX Runtime reads up to a NUL.
    raw: np.ndarray = kept.astype(f"S{max(map(len, kept), default=0) + 1}")
    return raw
