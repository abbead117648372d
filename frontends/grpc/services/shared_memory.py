"""SystemSharedMemory* and CudaSharedMemory*: regions that clients share with the server."""

from __future__ import annotations

from core.server import InferenceServer
from frontends.grpc.call import GrpcCall
from frontends.grpc.protocol.decode import decode
from frontends.grpc.protocol.messages import (
    CudaSharedMemoryRegisterRequest,
    CudaSharedMemoryRegisterResponse,
    CudaSharedMemoryStatusRequest,
    CudaSharedMemoryStatusResponse,
    CudaSharedMemoryUnregisterRequest,
    CudaSharedMemoryUnregisterResponse,
    SystemSharedMemoryRegisterRequest,
    SystemSharedMemoryRegisterResponse,
    SystemSharedMemoryStatusRequest,
    SystemSharedMemoryStatusResponse,
    SystemSharedMemoryUnregisterRequest,
    SystemSharedMemoryUnregisterResponse,
)
from frontends.shared.memory import MemoryControl


class SystemMemoryService:
    """Regions of system shared memory. Call from the event loop only."""

    def __init__(self, server: InferenceServer):
        self._memory = MemoryControl.of(server)

    async def status(self, data: bytes, call: GrpcCall) -> bytes:
        request = decode(SystemSharedMemoryStatusRequest, data)
        regions = {
            region.name: SystemSharedMemoryStatusResponse.RegionStatus(**region._asdict())
            for region in self._memory.status(request.name)
        }
        return SystemSharedMemoryStatusResponse(regions=regions).SerializeToString()

    async def register(self, data: bytes, call: GrpcCall) -> bytes:
        request = decode(SystemSharedMemoryRegisterRequest, data)
        await self._memory.register(request.name, request.key, request.offset, request.byte_size)
        return SystemSharedMemoryRegisterResponse().SerializeToString()

    async def unregister(self, data: bytes, call: GrpcCall) -> bytes:
        request = decode(SystemSharedMemoryUnregisterRequest, data)
        await self._memory.unregister(request.name)
        return SystemSharedMemoryUnregisterResponse().SerializeToString()


class CudaMemoryService:
    """Regions of GPU memory. Call from the event loop only."""

    def __init__(self, server: InferenceServer):
        self._memory = MemoryControl.of(server)

    async def status(self, data: bytes, call: GrpcCall) -> bytes:
        request = decode(CudaSharedMemoryStatusRequest, data)
        regions = {
            region.name: CudaSharedMemoryStatusResponse.RegionStatus(**region._asdict())
            for region in self._memory.cuda_status(request.name)
        }
        return CudaSharedMemoryStatusResponse(regions=regions).SerializeToString()

    async def register(self, data: bytes, call: GrpcCall) -> bytes:
        request = decode(CudaSharedMemoryRegisterRequest, data)
        await self._memory.register_cuda(
            request.name, request.raw_handle, request.device_id, request.byte_size
        )
        return CudaSharedMemoryRegisterResponse().SerializeToString()

    async def unregister(self, data: bytes, call: GrpcCall) -> bytes:
        request = decode(CudaSharedMemoryUnregisterRequest, data)
        await self._memory.unregister_cuda(request.name)
        return CudaSharedMemoryUnregisterResponse().SerializeToString()
