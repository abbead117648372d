from core.batch import Batch

class NativeExecutor:
    """Callable that executes batches on a native instance. Call it on the thread of the instance.

    The backend reads inputs of one request in place; inputs of several requests are copied together into
    memory of a pool. It writes outputs into memory of that pool, or into the shared memory of a client that
    is alone in its batch. Small outputs become `bytes`, large ones OutputMemory.
    """

    def __init__(self, capsule: object):
        """Take a capsule that `core.native.callbacks.new_executor` has checked."""

    def __call__(self, batch: Batch) -> None:
        """Answer the requests of a batch. Gathering and the backend run without the GIL.

        Raise CoreError if the backend has returned an error, Fatal if the instance must leave service.
        """

class NativeCall:
    """One batch that a backend executes, with the memory that the backend may read."""
