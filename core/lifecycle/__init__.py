"""Which versions should run; load, swap, drain, unload.

    repository ─► policy (pure) ─► ModelManager ─► ManagedModel ─► ModelVersion ─► backend

All state belongs to the loop thread. What blocks (reading files, a backend's load) runs on worker
threads and comes back.
"""

from core.lifecycle.manager import ModelManager
from core.lifecycle.version import ModelVersion

__all__ = ["ModelManager", "ModelVersion"]
