"""DeviceBatch: a batch for an instance that accepts arrays in the memory of a device.

queue & group ─► [DeviceBatch] ─► execute, of instances with `memory = "device"`.
"""

from __future__ import annotations

from typing import Any

from core.backend import ModelInstance
from core.batch import Batch
from core.tensor import Tensor


class DeviceBatch(Batch):
    """A Batch in which `batch["x"]` can be an array on a device, if a request has the input on a device.

    One request then gives its `Tensor.value`. Several give what the instance's `gather` returns, or a numpy
    array if that is NotImplemented. An input that all requests have in host memory is a numpy array.
    """

    def __init__(self, batch: Batch, instance: ModelInstance):
        super().__init__(batch.requests, batch.signature, batch.delivery)
        self._instance = instance
        self._arrays: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if (array := self._arrays.get(name)) is None:
            array = self._arrays[name] = self._input(name)
        return array

    def _input(self, name: str) -> Any:
        tensors: list[Tensor] = [request.inputs[name] for request in self.requests]
        if all(tensor.device is None for tensor in tensors):
            return super().__getitem__(name)
        spec = self.signature.inputs.get(name)
        if spec is not None and spec.ragged:
            tensors = [tensor.reshaped((tensor.count,)) for tensor in tensors]
        if len(tensors) == 1:
            return tensors[0].value
        found = self._instance.gather(name, [tensor.value for tensor in tensors])
        return super().__getitem__(name) if found is NotImplemented else found
