"""Memory of the server's pools (core.devices.pools) as tensors.

[pooled] ─► DeviceStreams.  A tensor, and each view of it, keeps its part of the pool. torch does not know
when a device is done with this memory: keep the tensor until the mark of the batch.
"""

from __future__ import annotations

from typing import Any

import torch

from core.devices import pools


def on_host(size: int) -> Any:
    """Return a new tensor uint8[size] in pinned memory; in ordinary memory if there is a pool that is full.

    Without a pool it is torch's own memory, which torch does not reuse before the copies of it are complete.
    """
    found = pools.current().on_host(size) if size else None
    if found is None:
        return torch.empty(size, dtype=torch.uint8, pin_memory=True)
    return torch.from_numpy(found)


def on_gpu(device: Any, size: int) -> Any | None:
    """Return a new tensor uint8[size] of a GPU's pool; None if it has no room, or if there is no pool."""
    found = pools.current().on_gpu(device.index, size) if size else None
    return None if found is None else torch.as_tensor(found, device=device)
