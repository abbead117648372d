"""SystemSharedMemory* and CudaSharedMemory*: regions that clients share with the server."""

from __future__ import annotations

from core.server import InferenceServer
from frontends.grpc.protocol import messages
from frontends.shared.memory import MemoryControl


async def system_status(
    server: InferenceServer, request: messages.SystemSharedMemoryStatusRequest
) -> messages.SystemSharedMemoryStatusResponse:
    response = messages.SystemSharedMemoryStatusResponse
    regions = {
        region.name: response.RegionStatus(**region._asdict())
        for region in MemoryControl.of(server).status(request.name)
    }
    return response(regions=regions)


async def system_register(
    server: InferenceServer, request: messages.SystemSharedMemoryRegisterRequest
) -> messages.SystemSharedMemoryRegisterResponse:
    place = (request.key, request.offset, request.byte_size)
    await MemoryControl.of(server).register(request.name, *place)
    return messages.SystemSharedMemoryRegisterResponse()


async def system_unregister(
    server: InferenceServer, request: messages.SystemSharedMemoryUnregisterRequest
) -> messages.SystemSharedMemoryUnregisterResponse:
    await MemoryControl.of(server).unregister(request.name)
    return messages.SystemSharedMemoryUnregisterResponse()


async def cuda_status(
    server: InferenceServer, request: messages.CudaSharedMemoryStatusRequest
) -> messages.CudaSharedMemoryStatusResponse:
    response = messages.CudaSharedMemoryStatusResponse
    regions = {
        region.name: response.RegionStatus(**region._asdict())
        for region in MemoryControl.of(server).cuda_status(request.name)
    }
    return response(regions=regions)


async def cuda_register(
    server: InferenceServer, request: messages.CudaSharedMemoryRegisterRequest
) -> messages.CudaSharedMemoryRegisterResponse:
    place = (request.raw_handle, request.device_id, request.byte_size)
    await MemoryControl.of(server).register_cuda(request.name, *place)
    return messages.CudaSharedMemoryRegisterResponse()


async def cuda_unregister(
    server: InferenceServer, request: messages.CudaSharedMemoryUnregisterRequest
) -> messages.CudaSharedMemoryUnregisterResponse:
    await MemoryControl.of(server).unregister_cuda(request.name)
    return messages.CudaSharedMemoryUnregisterResponse()
