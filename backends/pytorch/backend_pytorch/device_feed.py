"""Bring the inputs of a batch to the device of its instance.

batch ─► [DeviceFeed] ─► run.  Inputs on the device are used without a copy. Inputs of another GPU are copied
from there. Inputs on the host go through pinned memory, with one copy of the host and one of the device; for
large ones both run at the same time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import groupby
from typing import Any

import torch

from backend_pytorch.pieces import LARGE, Copier
from backend_pytorch.program import torch_dtype_of
from core import dtypes
from core.batch import Batch
from core.config import ModelConfig
from core.dtypes import DataType
from core.native.gather import gather
from core.ragged import batch_inputs
from core.tensor import Tensor

ALIGNMENT = 16  # bytes; compiled code needs it, and rows in the middle of a batch may lack it

Texts = Callable[[Any, str, Batch], list[str]]


class Fed:
    """The inputs of one batch, whose copies to the device are in progress.

    tensors   name → tensor, or list of text
    lent      addresses of memory that has another owner and that the program reads in place: a client's, or
              that of a pool. An output in such memory is copied
    held      objects that must live until the mark of the batch
    """

    def __init__(self) -> None:
        self.tensors: dict[str, Any] = {}
        self.lent: set[int] = set()
        self.held: list[Any] = []


class DeviceFeed:
    """Bring the inputs of one instance's batches to its device.

    Call it on the starting thread, inside `streams.feeding()`.

    datatypes   of all inputs of the program
    scalars     names of inputs that have no dimension for the program
    writes      whether the program may write to its arguments; memory of other owners is copied then
    texts       converts an array of BYTES to a List[str]
    """

    def __init__(
        self,
        streams: Any,
        config: ModelConfig,
        datatypes: Mapping[str, DataType],
        scalars: set[str],
        *,
        writes: bool,
        texts: Texts,
    ):
        self._streams = streams
        self._config = config
        self._datatypes = datatypes
        self._scalars = scalars
        self._writes = writes
        self._texts = texts
        self._copier = Copier()

    def __call__(self, batch: Batch) -> Fed:
        """Return the inputs of a batch. Starts their copies to the device, and does not wait for them."""
        fed = Fed()
        for name in batch:
            dtype = self._datatypes[name]
            if dtype is dtypes.BYTES:
                fed.tensors[name] = self._texts(batch[name], name, batch)
            else:
                fed.tensors[name] = self._input(batch, name, dtype, fed)
        if self._config.batch_input:
            for name, array in batch_inputs(self._config, batch).items():
                made = Tensor.of(name, array, self._datatypes[name])
                fed.tensors[name] = self._staged([made], self._datatypes[name], fed)
        for name in self._scalars & fed.tensors.keys():
            fed.tensors[name] = fed.tensors[name].reshape(())
        self._streams.fed(each for each in fed.tensors.values() if not isinstance(each, list))
        return fed

    def _input(self, batch: Batch, name: str, dtype: DataType, fed: Fed) -> Any:
        tensors: list[Tensor] = [request.inputs[name] for request in batch.requests]
        spec = batch.signature.inputs.get(name)
        if spec is not None and spec.ragged:
            tensors = [tensor.reshaped((tensor.count,)) for tensor in tensors]
        parts = list(self._parts(tensors, dtype, fed))
        if len(parts) > 1:
            fed.held += parts
            return torch.cat([part for part, _ in parts])
        (whole, is_lent) = parts[0]
        if not is_lent:
            return whole
        if self._writes or not whole.is_contiguous() or whole.data_ptr() % ALIGNMENT:
            return whole.clone(memory_format=torch.contiguous_format)
        fed.lent.add(whole.untyped_storage().data_ptr())
        return whole

    def _parts(
        self, tensors: list[Tensor], dtype: DataType, fed: Fed
    ) -> Iterator[tuple[Any, bool]]:
        """Yield tensors on the device, each with whether others own its memory.

        Consecutive tensors that pass through the host are gathered into one tensor.
        """
        for comes, group in groupby(tensors, lambda tensor: self._streams.takes(tensor.device)):
            if not comes:
                yield self._staged(list(group), dtype, fed), False
                continue
            for tensor in group:
                yield self._taken(tensor, dtype, fed)

    def _taken(self, tensor: Tensor, dtype: DataType, fed: Fed) -> tuple[Any, bool]:
        """Return a client's GPU tensor on the instance's GPU, and whether others own its memory.

        A tensor of the instance's GPU is used in place; a tensor of another GPU is copied. A tensor that the
        producer's library cannot export is copied through the host.
        """
        array = tensor.value
        try:
            found = self._streams.adopted(array)
        except (BufferError, NotImplementedError, RuntimeError, TypeError, ValueError):
            return self._staged([tensor], dtype, fed), False
        fed.held += (array, found)
        expected = torch_dtype_of(dtype)
        if found.dtype != expected:
            found = found.view(expected)  # bit patterns of BF16, bytes of BOOL
        if self._streams.is_here(found):
            return found, True
        return self._streams.across(found), False

    def _staged(self, tensors: list[Tensor], dtype: DataType, fed: Fed) -> Any:
        """Gather tensors in new host memory, start the copy to the device, and return the copy."""
        first = tensors[0].shape
        shape = first if len(tensors) == 1 else (sum(t.shape[0] for t in tensors), *first[1:])
        streams, size = self._streams, sum(tensor.byte_size for tensor in tensors)
        sources = [tensor.raw for tensor in tensors if tensor.count]
        staged = streams.staging(size)
        fed.held.append(staged)  # a pool reuses its memory at once
        there, is_pooled = streams.room(staged)
        if is_pooled:
            fed.lent.add(there.untyped_storage().data_ptr())
            fed.held.append(there)
        if size < LARGE or there is staged:
            gather(sources, staged.numpy())
            streams.send(staged, there, 0, size)
        else:
            self._copier.copy(sources, staged.numpy(), partial(streams.send, staged, there))
        return there.view(torch_dtype_of(dtype)).reshape(shape)

    def close(self) -> None:
        """End the threads of copies."""
        self._copier.close()
