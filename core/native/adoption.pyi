from collections.abc import Callable

from core.backend import ModelInstance
from core.batch import Batch

ABI_VERSION: int
"""CORE_ABI_VERSION of core_abi.h."""

def adopt(instance: ModelInstance) -> Callable[[Batch], None]:
    """What executes batches on an instance that has put a capsule into `native`. Where it opens.

    Calls `attach` of the backend. Raises CoreError(INTERNAL), naming the module of the instance, for a
    capsule that this core cannot use.
    """

class Sender:
    """Who sends answers that a backend makes after its execute has returned. Under the GIL."""

class Asked:
    """What a backend has asked of one request."""

class Metered:
    """A metric that a backend has made."""
