"""The outputs of a batch: start their copies to the host, and split them by request.

run ─► [DeviceResults.pending] ─► mark ─► [DeviceResults.answers] ─► core.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from backend_pytorch.device_states import GrowableStates
from backend_pytorch.tensors import array_of, array_of_text
from core.batch import Batch
from core.dtypes import DataType
from core.errors import internal
from core.output_memory import DevicePlace
from core.request import DeviceOutput, InferenceRequest
from core.tensor import DeviceTensor, Tensor


@dataclass
class PendingOutput:
    """One output of a batch, whose copy to the host may be in progress.

    host     an array, or the pinned tensor of the copy; None if the output is not needed on the host
    device   the tensor that stays on the device; None if no request wants it there
    parts    one tensor for each request, in memory of its own; only for a state on a GPU, else None
    """

    host: Any = None
    device: Any = None
    parts: list[Any] | None = None


class DeviceResults:
    """Return the outputs of one instance to core.

    datatypes   of all outputs
    states      names of outputs that update a state; they stay on the device
    scalars     names of outputs with a `reshape`; other outputs that are scalars become [1]
    columns     names of outputs of text that have a second dimension for clients
    keeps       whether a later run may write to the outputs; those that stay on the device are copied then
    scatters    whether the configuration has `batch_output`; the outputs are split on the host then
    """

    def __init__(
        self,
        streams: Any,
        datatypes: Mapping[str, DataType],
        states: Collection[str],
        scalars: Collection[str],
        columns: Collection[str],
        *,
        keeps: bool,
        scatters: bool,
    ):
        self._streams = streams
        self._datatypes = datatypes
        self._states = frozenset() if scatters else frozenset(states)
        self._scalars = scalars
        self._columns = columns
        self._keeps = keeps
        self._scatters = scatters
        self._growable = GrowableStates(streams)

    def pending(
        self, outputs: Mapping[str, Any], batch: Batch, lent: Collection[int]
    ) -> dict[str, PendingOutput]:
        """Start the copies of the outputs, and return name → PendingOutput.

        Call it inside `streams.computing()`, on the starting thread.

        lent   addresses of the inputs' memory that others own
        Raises CoreError(INTERNAL) if the model batches, without batch_output, and the first dimension of an
        output is not the number of rows.
        """
        found: dict[str, PendingOutput] = {}
        copied: list[tuple[PendingOutput, Any]] = []
        grown: list[tuple[PendingOutput, str, Any]] = []
        growing = self._growable.names(batch) if self._states else ()
        for name, value in outputs.items():
            each = found[name] = PendingOutput()
            if isinstance(value, list):
                each.host = self._text(name, value)
                continue
            tensor = self._seen(name, value)
            if not self._scatters:
                _check_rows(name, tuple(tensor.shape), batch)
            if self._streams.on_host(tensor):
                each.host = array_of(tensor, copy=True)
                continue
            tensor = tensor.contiguous()
            if growing and self._is_lent(tensor, lent):
                tensor = tensor.clone()  # the new value of a state may be written over it
            if name in growing and self._streams.is_here(tensor):
                grown.append((each, name, tensor))
                continue
            if name in self._states:
                each.parts = self._parts(tensor, batch, lent)
                continue
            here, there = self._wanted(name, batch)
            if there:
                each.device = self._own(tensor, lent)
            if here:
                copied.append((each, tensor))
        for each, name, tensor in grown:
            each.parts = self._growable.kept(name, _rows_of(tensor, batch), batch)
        self._streams.computed()
        for each, tensor in copied:
            each.host = self._streams.to_host(tensor)
        return found

    def _wanted(self, name: str, batch: Batch) -> tuple[bool, bool]:
        """Return whether any request wants an output on the host, and whether any wants it on the device.

        With `scatters`, the output is needed on the host only.
        """
        if self._scatters:
            return True, False
        ways = {_way(request, name) for request in batch.requests}
        return _HOST in ways, _DEVICE in ways

    def _seen(self, name: str, tensor: Any) -> Any:
        """Return an output without gradient or lazy operations. A scalar becomes [1], unless in `scalars`."""
        tensor = tensor.detach()
        if tensor.is_conj() or tensor.is_neg():
            tensor = tensor.resolve_conj().resolve_neg()
        return tensor if tensor.dim() or name in self._scalars else tensor.reshape(1)

    def _own(self, tensor: Any, lent: Collection[int]) -> Any:
        """Return the tensor, or a copy if its memory may change or has another owner."""
        return tensor.clone() if self._keeps or self._is_lent(tensor, lent) else tensor

    def _is_lent(self, tensor: Any, lent: Collection[int]) -> bool:
        return tensor.untyped_storage().data_ptr() in lent

    def _parts(self, tensor: Any, batch: Batch, lent: Collection[int]) -> list[Any]:
        """Return the state of each request in memory of its own, because a state outlives its batch."""
        if len(batch.requests) > 1:
            return [part.clone() for part in _rows_of(tensor, batch)]
        size = tensor.numel() * tensor.element_size()
        if tensor.untyped_storage().nbytes() > size:
            return [tensor.clone()]
        return [self._own(tensor, lent)]

    def _text(self, name: str, texts: list[str]) -> np.ndarray:
        found = array_of_text(texts)
        return found.reshape(-1, 1) if name in self._columns else found

    def arrays(self, pending: Mapping[str, PendingOutput]) -> dict[str, np.ndarray]:
        """Return all outputs, not split by request. Call it after the mark, and only with `scatters`."""
        return {name: _host_array(each.host) for name, each in pending.items()}

    def answers(self, pending: Mapping[str, PendingOutput], batch: Batch) -> list[list[Tensor]]:
        """Return the tensors of each request: all outputs that any request wants. Call it after the mark."""
        found: list[list[Tensor]] = [[] for _ in batch.requests]
        for name, each in pending.items():
            if each.host is None and each.device is None and each.parts is None:
                continue  # no request wants it
            for tensors, tensor in zip(found, self._rows(name, each, batch), strict=True):
                tensors.append(tensor)
        return found

    def _rows(self, name: str, each: PendingOutput, batch: Batch) -> list[Tensor]:
        if each.parts is not None:
            return [self._on_device(name, part) for part in each.parts]
        host = device = None
        if each.host is not None:
            host = Tensor.of(name, _host_array(each.host), self._datatypes[name])
        if each.device is not None:
            device = self._on_device(name, each.device)
        chosen = [
            device if host is None or (device and _way(request, name) is _DEVICE) else host
            for request in batch.requests
        ]
        if len(chosen) == 1:
            return chosen  # type: ignore[return-value]  # host or device is set
        return [_part(whole, rows) for whole, rows in zip(chosen, _ranges(batch), strict=True)]

    def _on_device(self, name: str, tensor: Any) -> Tensor:
        return Tensor.of(name, self._streams.shown(tensor), self._datatypes[name])


_HOST, _DEVICE = "host", "device"


def _way(request: InferenceRequest, name: str) -> str:
    """Return where a request wants an output; "" if it does not want it.

    A request that names no outputs wants all of them on the host.
    """
    if not request.outputs:
        return _HOST
    for output in request.outputs:
        if output.name == name:
            there = isinstance(output, DeviceOutput) or isinstance(output.memory, DevicePlace)
            return _DEVICE if there else _HOST
    return ""


def _check_rows(name: str, shape: tuple[int, ...], batch: Batch) -> None:
    if batch.signature.max_batch_size and (not shape or shape[0] != batch.rows):
        raise internal(
            f"model '{batch.signature.name}' gave output '{name}' with shape {list(shape)} for a "
            f"batch of {batch.rows} rows: the first dimension must be {batch.rows}"
        )


def _ranges(batch: Batch) -> list[slice]:
    """Return the range of rows of each request."""
    found, first = [], 0
    for request in batch.requests:
        found.append(slice(first, first + request.rows))
        first += request.rows
    return found


def _rows_of(tensor: Any, batch: Batch) -> list[Any]:
    """Return the rows of each request."""
    return [tensor] if len(batch.requests) == 1 else [tensor[rows] for rows in _ranges(batch)]


def _part(whole: Tensor | None, rows: slice) -> Tensor:
    if isinstance(whole, DeviceTensor):
        return whole.rows(rows.start, rows.stop - rows.start)
    assert whole is not None
    array = whole.array[rows]
    return Tensor(whole.name, whole.dtype, array.shape, array=array)


def _host_array(host: Any) -> np.ndarray:
    return host if isinstance(host, np.ndarray) else array_of(host, copy=False)
