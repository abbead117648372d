"""The methods of the v2 protocol over gRPC, and what the router does with each.

path ─► [purpose_of] ─► Purpose
"""

from __future__ import annotations

from typing import Final

from core_router.targets import Purpose

_V2 = "/inference.GRPCInferenceService/"
STREAM: Final = f"{_V2}ModelStreamInfer".encode()
HEALTH: Final = b"/grpc.health.v1.Health/Check"

_PURPOSES = {
    "ModelInfer": Purpose.INFERENCE,
    "ModelReady": Purpose.MODEL,
    "ModelMetadata": Purpose.MODEL,
    "ModelConfig": Purpose.MODEL,
    "ServerLive": Purpose.LIVE,
    "ServerReady": Purpose.READY,
    "ServerMetadata": Purpose.ANY,
    "ModelStatistics": Purpose.STATISTICS,
    "RepositoryIndex": Purpose.INDEX,
    "RepositoryModelLoad": Purpose.EVERY,
    "RepositoryModelUnload": Purpose.EVERY,
    "SystemSharedMemoryStatus": Purpose.ANY,
    "SystemSharedMemoryRegister": Purpose.EVERY,
    "SystemSharedMemoryUnregister": Purpose.EVERY,
    "CudaSharedMemoryStatus": Purpose.ANY,
    "CudaSharedMemoryRegister": Purpose.EVERY,
    "CudaSharedMemoryUnregister": Purpose.EVERY,
    "TraceSetting": Purpose.SETTINGS,
    "LogSettings": Purpose.SETTINGS,
}
_BY_PATH = {f"{_V2}{name}".encode(): purpose for name, purpose in _PURPOSES.items()}
_BY_PATH[HEALTH] = Purpose.READY


def purpose_of(path: bytes) -> Purpose:
    """Return what the router does with a call of a method; OPEN for methods that it does not know."""
    return _BY_PATH.get(path, Purpose.OPEN)
