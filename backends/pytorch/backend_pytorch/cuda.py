"""numpy ⇄ torch on GPUs: a stream for each instance, copies through pinned memory.

instance ─► [Lane] ─► run on its stream ─► [Lane] ─► core.  Copies of one instance go on while another one
computes; two instances on a GPU are enough to hide them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np
import torch

from backend_pytorch.tensors import array_of, tensor_of
from core.dtypes import DataType


class Lane:
    """The streams of one instance: one on its device, or one on each GPU for a model that places itself."""

    def __init__(self, device: Any, every_gpu: bool):
        self.device = device
        count = torch.cuda.device_count()
        devices = [torch.device("cuda", i) for i in range(count)] if every_gpu else [device]
        self._streams = [torch.cuda.Stream(device=each) for each in devices]

    @contextmanager
    def current(self) -> Iterator[None]:
        """Within it what torch does goes to the streams of this instance."""
        with ExitStack() as entered:
            for stream in self._streams:
                entered.enter_context(torch.cuda.stream(stream))
            if self.device.type == "cuda":
                entered.enter_context(torch.cuda.device(self.device))
            yield

    def tensor_of(self, array: np.ndarray, dtype: DataType) -> Any:
        """On the device; the copy is under way. Pinned memory comes from torch's own pool, which does not
        give it out again before the copy has been done."""
        found = tensor_of(array, dtype, writes=False)
        if self.device.type == "cpu":
            return found.clone()
        pinned = torch.empty(found.shape, dtype=found.dtype, pin_memory=True)
        pinned.copy_(found)
        return pinned.to(self.device, non_blocking=True)

    def arrays_of(self, tensors: dict[str, Any]) -> dict[str, np.ndarray]:
        """On the host, in pinned memory of their own, when this returns."""
        landed = {}
        for name, tensor in tensors.items():
            if tensor.device.type == "cpu":
                landed[name] = tensor.clone()
                continue
            landed[name] = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True)
            with torch.cuda.stream(torch.cuda.current_stream(tensor.device)):
                landed[name].copy_(tensor, non_blocking=True)
        self.wait()
        return {name: array_of(tensor, copy=False) for name, tensor in landed.items()}

    def wait(self) -> None:
        """Until everything on the streams is done; raises what went wrong there."""
        for stream in self._streams:
            stream.synchronize()
