"""Convert the inputs of a batch for ONNX Runtime.

batch ─► [Feed] ─► run.  Most arrays need no conversion. Scalars lose their dimension, text becomes str, and
the tensors of batch_input in config.pbtxt are added.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from backend_onnx.graph import Graph
from core import dtypes
from core.batch import Batch
from core.config import ModelConfig
from core.devices import dlpack
from core.errors import CoreError, invalid
from core.ragged import batch_inputs

_SMALL = 1 << 20  # bytes that padded elements of one width may take in any case
_WIDER = 16  # a larger array may take this many times the bytes of its elements


class Feed:
    """Convert the batches of one instance to feeds: input name → array."""

    def __init__(self, config: ModelConfig, graph: Graph):
        self._config = config if config.batch_input else None
        infos = {**graph.inputs, **graph.overridable}
        self._scalars = {name for name, info in infos.items() if not info.dims}
        self._texts = {name for name, info in infos.items() if info.dtype is dtypes.BYTES}
        self._as_they_are = not (self._scalars or self._texts or config.batch_input)

    def __call__(self, batch: Batch) -> dict[str, Any]:
        """Return {input name: array}. The arrays of a GPU instance may be on a device.

        Fails each request whose text ONNX Runtime cannot take.
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
                array = feed[name]
                on_host = array if isinstance(array, np.ndarray) else dlpack.to_host(array)
                feed[name] = on_host.reshape(())
        return feed


def _text(array: np.ndarray, name: str, batch: Batch) -> np.ndarray:
    """Return the elements as str, which ONNX Runtime takes; if some are not UTF-8, what `_mixed` returns."""
    elements = array.reshape(-1)
    try:
        found = _decoded(elements)
    except UnicodeDecodeError:
        found = _mixed(elements, name, batch)
    return found.reshape(array.shape)


def _decoded(elements: np.ndarray) -> np.ndarray:
    found = np.empty(len(elements), object)
    found[:] = [element.decode() for element in elements]
    return found


def encoded(array: np.ndarray) -> np.ndarray:
    """Return an array of str with its elements as bytes of UTF-8, the elements of core's BYTES."""
    found = np.empty(array.size, object)
    found[:] = [element.encode() for element in array.reshape(-1)]
    return found.reshape(array.shape)


def _mixed(elements: np.ndarray, name: str, batch: Batch) -> np.ndarray:
    """Return elements, some of them not UTF-8, as bytes of one width. ONNX Runtime reads each up to a NUL.

    A request with an element that is not UTF-8 fails if any request of the batch has a NUL, or if a long
    element would make the array too large. The elements of a failed request become empty. If all elements
    that are left are UTF-8, they are returned as str.
    """
    kept = elements.copy()
    raw = [(i, part) for i, part in _of_requests(kept, name, batch) if not _decodes(part)]  # views
    for i, part in raw:
        if _has_nul(part):
            batch.fail(i, _not_passed(name, batch, "a NUL byte beside them"))
            part[:] = b""
    width = max(map(len, kept), default=0) + 1  # ONNX Runtime reads up to a NUL
    is_wide = width * len(kept) > max(_SMALL, _WIDER * sum(map(len, kept)))
    if is_wide or _has_nul(kept):
        reason = (
            "an element that is much longer than others" if is_wide else "a NUL in the same batch"
        )
        for i, part in raw:
            if not _decodes(part):
                batch.fail(i, _not_passed(name, batch, reason))
                part[:] = b""
        return _decoded(kept)
    fixed: np.ndarray = kept.astype(f"S{width}")
    return fixed


def _of_requests(elements: np.ndarray, name: str, batch: Batch) -> Iterator[tuple[int, np.ndarray]]:
    first = 0
    for i, request in enumerate(batch.requests):
        last = first + request.inputs[name].array.size if len(batch) > 1 else len(elements)
        yield i, elements[first:last]
        first = last


def _decodes(elements: np.ndarray) -> bool:
    try:
        _decoded(elements)
    except UnicodeDecodeError:
        return False
    return True


def _has_nul(elements: np.ndarray) -> bool:
    return any(b"\0" in element for element in elements)


def _not_passed(name: str, batch: Batch, reason: str) -> CoreError:
    return invalid(
        f"input '{name}' of model '{batch.signature.name}' has bytes that are no UTF-8, and there is "
        f"{reason}; ONNX Runtime's Python interface can pass on only one of them"
    )
