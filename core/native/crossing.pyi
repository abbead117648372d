from core.backend import ModelInstance
from core.batch import Batch

ABI_VERSION: int
"""CORE_ABI_VERSION of core_abi.h."""

class Memory:
    """Bytes of an output of a native backend, read only, with the buffer protocol.

    Owns a block of memory, or a part of what another one owns. When the last one goes the block goes back
    to the pool of its instance, or its backend is told. Any thread.
    """

    def __len__(self) -> int: ...

class Crossing:
    """Executes batches on a native instance, for ModelInstance.execute. Where the instance runs.

    Inputs are shown as they lie, those of several requests copied together into memory of a pool.
    Outputs are written into memory of that pool, or into the shared memory of a client that is alone in
    its batch; small ones leave it as `bytes`, large ones as Memory.
    """

    def __init__(self, instance: ModelInstance):
        """Take the capsule of an instance that has opened.

        Raises CoreError(INTERNAL) if it is none, was built for another ABI version, or asks for what this
        core cannot do.
        """

    def __call__(self, batch: Batch) -> None:
        """Answer the requests of a batch. Releases the GIL while it gathers and the backend computes.

        Raises CoreError for the error that execute has returned, Fatal if the instance is to leave service.
        """

class Flight:
    """One batch under way, and what its backend may still read."""
