from core.batch import Batch

class NativeExecutor:
    """Callable that executes batches on a native instance. Call it on the thread of the instance.

    The backend reads the inputs of a single request in place. The inputs of several requests are copied into
    memory of a pool, one after another. The backend writes outputs into memory of that pool, into its own, or
    into a client's shared memory. Outputs up to 4 KiB become `bytes`, larger ones OutputMemory.
    """

    def __init__(self, capsule: object):
        """`capsule` holds a core_instance, and `core.native.callbacks.new_executor` has checked it."""

    def __call__(self, batch: Batch) -> None:
        """Answer the requests of a batch. Gathering and the backend run without the GIL.

        Raise CoreError if the inputs do not fit together or the backend returns an error; Fatal, a CoreError,
        if the instance must leave service.
        """

class NativeCall:
    """One batch that a native backend executes, and the memory that the backend may read meanwhile."""
