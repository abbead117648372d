"""For clients on the server's machine: tensors in memory that both have, so that they need not travel.

It needs numpy and nothing of the server; tritonclient is used when it is there. docs/shared-memory.md
"""

from core.client.async_pool import AsyncSharedMemoryPool
from core.client.pool import SharedMemoryPool
from core.client.shared_array import SharedArray

__all__ = ["AsyncSharedMemoryPool", "SharedArray", "SharedMemoryPool"]
