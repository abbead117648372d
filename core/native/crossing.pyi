from core.batch import Batch

class Crossing:
    """Executes batches on a native instance, for ModelInstance.execute. Where the instance runs.

    Inputs are shown as they lie, those of several requests copied together into memory of a pool.
    Outputs are written into memory of that pool, or into the shared memory of a client that is alone in
    its batch; small ones leave it as `bytes`, large ones as Memory.
    """

    def __init__(self, capsule: object):
        """Take a capsule that core.native.adoption has found to be good."""

    def __call__(self, batch: Batch) -> None:
        """Answer the requests of a batch. Releases the GIL while it gathers and the backend computes.

        Raises CoreError for the error that execute has returned, Fatal if the instance is to leave service.
        """

class Flight:
    """One batch under way, and what its backend may still read."""
