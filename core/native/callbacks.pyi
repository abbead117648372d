from collections.abc import Callable

from core.backend import ModelInstance
from core.batch import Batch

ABI_VERSION: int
"""CORE_ABI_VERSION of core_abi.h."""

def new_executor(instance: ModelInstance) -> Callable[[Batch], None]:
    """Return a callable that executes batches on the native instance in the capsule `instance.native`.

    Call it on the thread that opens the instance; it calls `attach` of the backend. Raise CoreError(INTERNAL)
    that names the instance's module if this core cannot use the capsule.
    """

class DeferredResponse:
    """Sends responses to one request after execute has returned. Needs the GIL."""

class DetailsOwner:
    """Owner of the details of one request that a backend has asked for."""

class BackendMetric:
    """A metric that a backend has created."""
