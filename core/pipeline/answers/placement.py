"""An output into the memory that its request names.

split ─► [place] ─► delivery.  Frontends send no data for such an output.
"""

from __future__ import annotations

import numpy as np

from core.errors import internal
from core.tensor import Tensor


def place(tensor: Tensor, memory: memoryview) -> None:
    """Copy the wire bytes of `tensor` to the beginning of `memory`; what is behind stays.

    memory   writable, flat; the tensor may be a view of it
    Any thread; large copies run without the GIL. Raises CoreError(INTERNAL) if it is too small.
    """
    size = tensor.byte_size
    if size > memory.nbytes:
        raise internal(
            f"shared memory size specified with the request for output '{tensor.name}' "
            f"({memory.nbytes} bytes) should be at least {size} bytes to hold the results"
        )
    if size:
        target, source = np.frombuffer(memory[:size], np.uint8), np.frombuffer(tensor.raw, np.uint8)
        # A native backend has written it there.
        if target.__array_interface__["data"][0] != source.__array_interface__["data"][0]:
            # numpy and not `gather`: it sees when source and target overlap.
            np.copyto(target, source)
