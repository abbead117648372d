"""The lifecycle of models: decide which versions run; load, swap, drain and unload them.

    repository ─► policy (pure) ─► ModelManager ─► ManagedModel ─► ModelVersion ─► backend

All state belongs to the loop thread. Blocking work (reading files, a backend's load) runs on worker
threads; its result returns to the loop.
"""

from core.lifecycle.manager import ModelManager
from core.lifecycle.version import ModelVersion

__all__ = ["ModelManager", "ModelVersion"]
