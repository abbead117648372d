"""Shared memory for clients on the server's machine: requests name the location of tensors, not their bytes.

It needs numpy and no part of the server, and uses tritonclient if the program does:
docs/serve/shared-memory.md.
"""

from core_client.async_pool import AsyncSharedMemoryPool
from core_client.pool import SharedMemoryPool
from core_client.registration import SharedMemoryError
from core_client.shared_array import SharedArray

__all__ = ["AsyncSharedMemoryPool", "SharedArray", "SharedMemoryError", "SharedMemoryPool"]
