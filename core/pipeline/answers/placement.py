"""place: copies an output into memory of the client.

split ─► [place] ─► delivery.  Frontends send no data for such an output.
"""

from __future__ import annotations

import numpy as np

from core.errors import internal
from core.output_memory import DevicePlace, too_small
from core.tensor import Tensor


def place(tensor: Tensor, memory: memoryview | DevicePlace) -> None:
    """Copy the wire bytes of `tensor` to the beginning of `memory`. Bytes behind them keep their value.

    memory   writable and flat, or a DevicePlace; the tensor may be a view of it. `memory.obj` may have an
             attribute `lost`: whether the memory has been removed
    Thread-safe; large copies run without the GIL. Raise CoreError(INTERNAL) if the memory is too small, or is
    removed during the copy.
    """
    if isinstance(memory, DevicePlace):
        memory.fill(tensor)
        return
    size = tensor.byte_size
    if size > memory.nbytes:
        raise too_small(tensor.name, memory.nbytes, size)
    if size:
        target, source = np.frombuffer(memory[:size], np.uint8), np.frombuffer(tensor.raw, np.uint8)
        # Skip the copy if a native backend has written the output there.
        if target.__array_interface__["data"][0] != source.__array_interface__["data"][0]:
            # numpy and not `gather`, because numpy handles an overlap of source and target.
            np.copyto(target, source)
    if getattr(memory.obj, "lost", False):
        raise internal(
            f"output '{tensor.name}' cannot be written: its shared memory was made smaller by its owner, or "
            "the system had no memory left for it"
        )
