"""SystemSharedMemory* and CudaSharedMemory*: regions that clients share with the server."""

from __future__ import annotations

from core.server import Server
from frontends.grpc.call import Call
from frontends.grpc.protocol.decode import decode
from frontends.grpc.protocol.messages import (
    CudaSharedMemoryRegisterRequest,
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


class SystemMemoryService:
    """Regions of system shared memory. Loop thread only."""

    def __init__(self, server: Server):
        self._server = server

    async def status(self, data: bytes, call: Call) -> bytes:
        request = decode(SystemSharedMemoryStatusRequest, data)
        regions = {
            region.name: SystemSharedMemoryStatusResponse.RegionStatus(**region._asdict())
            for region in self._server.shared_memory.status(request.name)
        }
        return SystemSharedMemoryStatusResponse(regions=regions).SerializeToString()

    async def register(self, data: bytes, call: Call) -> bytes:
        request = decode(SystemSharedMemoryRegisterRequest, data)
        await self._server.management.register_memory(
            request.name, request.key, request.offset, request.byte_size
        )
        return SystemSharedMemoryRegisterResponse().SerializeToString()

    async def unregister(self, data: bytes, call: Call) -> bytes:
        request = decode(SystemSharedMemoryUnregisterRequest, data)
        await self._server.management.unregister_memory(request.name)
        return SystemSharedMemoryUnregisterResponse().SerializeToString()


class CudaMemoryService:
    """The same for memory of GPUs, of which there is none. Loop thread only."""

    def __init__(self, server: Server):
        self._regions = server.cuda_shared_memory

    async def status(self, data: bytes, call: Call) -> bytes:
        self._regions.status(decode(CudaSharedMemoryStatusRequest, data).name)
        return CudaSharedMemoryStatusResponse().SerializeToString()

    async def register(self, data: bytes, call: Call) -> bytes:
        self._regions.register(decode(CudaSharedMemoryRegisterRequest, data).name)

    async def unregister(self, data: bytes, call: Call) -> bytes:
        self._regions.unregister(decode(CudaSharedMemoryUnregisterRequest, data).name)
        return CudaSharedMemoryUnregisterResponse().SerializeToString()
