from collections.abc import Callable

from core.backend import ModelInstance
from core.batch import Batch

ABI_VERSION: int
"""CORE_ABI_VERSION of core_abi.h."""

def new_executor(instance: ModelInstance) -> Callable[[Batch], None]:
    """Return a callable that executes batches on the native instance in the capsule `instance.native`.

    Call it on the thread that opens the instance; it calls `attach` of the core_instance. Raise
    CoreError(INTERNAL), which names the instance's module, if this core cannot use the capsule.
    """

class DeferredResponse:
    """Sends the responses of a native backend to one request, during or after execute. Needs the GIL."""

class DetailsOwner:
    """Owns the memory of the core_details of one request, which a backend has asked for."""

class BackendMetric:
    """A metric that a native backend has created; the backend holds one reference to it."""
